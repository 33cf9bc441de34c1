import { Fragment } from "react";

/** A text in which what stands between backticks is code, as descriptions in schemas are written. */
export function Words({ text }: { text: string }) {
  return text.split("`").map((piece, place) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and do not move
    if (place % 2 === 0) return <Fragment key={place}>{piece}</Fragment>;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: as above
      <span key={place} className="mono">
        {piece}
      </span>
    );
  });
}
