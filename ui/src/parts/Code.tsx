/** A long text as it is, which is scrolled also by keyboard. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <section
      className="code tall"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      {text}
    </section>
  );
}
