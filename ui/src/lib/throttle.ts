/** Does each thing at most once in a while: at once if it is time, and else once it is. */
export class Throttle {
  private readonly due = new Map<string, number>();
  private readonly waiting = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly everyMs: number) {}

  run(name: string, act: () => void) {
    if (this.waiting.has(name)) return;
    const waitMs = (this.due.get(name) ?? 0) - Date.now();
    const go = () => {
      this.waiting.delete(name);
      this.due.set(name, Date.now() + this.everyMs);
      act();
    };
    if (waitMs <= 0) go();
    else this.waiting.set(name, setTimeout(go, waitMs));
  }
}
