import { EditPage } from "./EditPage";

export function Component() {
  return <EditPage key="outbound" section="outbound" />;
}
