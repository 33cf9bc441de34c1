import { EditPage } from "./EditPage";

export function Component() {
  return <EditPage key="callers" section="callers" />;
}
