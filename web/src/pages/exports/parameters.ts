// Parameters of an export as they are typed. Pure.

/** The changed parameters to send; an empty value removes a parameter. */
export function changed(before: Record<string, string>, now: Record<string, string>): Record<string, string> {
  const all = Object.entries(now).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(all.filter(([name, value]) => value !== (before[name] ?? "")));
}
