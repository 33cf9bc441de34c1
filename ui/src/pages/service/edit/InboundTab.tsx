import { EditPage } from "./EditPage";

export function Component() {
  return <EditPage key="inbound" section="inbound" />;
}
