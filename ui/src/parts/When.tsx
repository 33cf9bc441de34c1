import { useUtc } from "../lib/preferences";
import { absolute, relative, useNow } from "../lib/time";

/** A time: how long ago, and when exactly if one asks. `exact` is the other way round. */
export function When({ ms, exact = false }: { ms: number; exact?: boolean }) {
  const [utc] = useUtc();
  const now = useNow(1000);
  const [shown, hint] = exact
    ? [absolute(ms, utc), relative(ms, now)]
    : [relative(ms, now), absolute(ms, utc)];
  return (
    <time dateTime={new Date(ms).toISOString()} className="tnum" title={hint}>
      {shown}
    </time>
  );
}
