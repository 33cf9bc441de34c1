/** The share of each name in percent, whole numbers that sum to 100; the largest remainders are rounded up. */
export function percentages(weights: Record<string, number>): Record<string, number> {
  const names = Object.keys(weights);
  const sum = names.reduce((total, name) => total + (weights[name] ?? 0), 0);
  if (sum === 0) return Object.fromEntries(names.map((name) => [name, 0]));
  const exact = names.map((name) => ({ name, share: ((weights[name] ?? 0) * 100) / sum }));
  const whole = exact.map(({ name, share }) => ({ name, share, floor: Math.floor(share) }));
  let left = 100 - whole.reduce((total, { floor }) => total + floor, 0);
  const byRest = [...whole].sort((a, b) => b.share - b.floor - (a.share - a.floor));
  const rounded = new Map(whole.map(({ name, floor }) => [name, floor]));
  for (const { name, floor } of byRest) {
    if (left <= 0) break;
    rounded.set(name, floor + 1);
    left -= 1;
  }
  return Object.fromEntries(names.map((name) => [name, rounded.get(name) ?? 0]));
}

/** Gives a name so many percent; the others keep their proportions in what is left. */
export function shift(shares: Record<string, number>, name: string, percent: number): Record<string, number> {
  const given = Math.max(0, Math.min(100, Math.round(percent)));
  const others = Object.keys(shares).filter((other) => other !== name);
  if (others.length === 0) return { [name]: 100 };
  const rest = 100 - given;
  const sum = others.reduce((total, other) => total + (shares[other] ?? 0), 0);
  const wanted = others.map((other) => [other, sum === 0 ? 1 : (shares[other] ?? 0)] as const);
  const spread = percentages(Object.fromEntries(wanted));
  const scaled = others.map((other) => ({ other, share: ((spread[other] ?? 0) * rest) / 100 }));
  const floors = new Map(scaled.map(({ other, share }) => [other, Math.floor(share)]));
  let left = rest - [...floors.values()].reduce((total, floor) => total + floor, 0);
  for (const { other } of scaled.sort((a, b) => (b.share % 1) - (a.share % 1))) {
    if (left <= 0) break;
    floors.set(other, (floors.get(other) ?? 0) + 1);
    left -= 1;
  }
  return Object.fromEntries(
    Object.keys(shares).map((each) => [each, each === name ? given : (floors.get(each) ?? 0)]),
  );
}

/** What should make one think twice before shares change like this. */
export function rash(before: Record<string, number>, after: Record<string, number>): string[] {
  const warnings: string[] = [];
  for (const name of Object.keys(after)) {
    const [was, is] = [before[name] ?? 0, after[name] ?? 0];
    if (was > 0 && is === 0) warnings.push(`${name} gets nothing any more.`);
    else if (Math.abs(is - was) > 50) warnings.push(`${name} goes from ${was} % to ${is} % at once.`);
  }
  return warnings;
}
