import { useLocalStorage } from "@mantine/hooks";

/** Times are shown in UTC, and not in the browser's time zone. */
export const useUtc = () => useLocalStorage({ key: "tower.utc", defaultValue: false });
