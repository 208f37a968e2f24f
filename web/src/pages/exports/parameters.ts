// Parameters of an export as they are typed. Pure.

/** What is to be sent: what became another; an empty value takes a parameter away. */
export function changed(before: Record<string, string>, now: Record<string, string>): Record<string, string> {
  const all = Object.entries(now).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(all.filter(([name, value]) => value !== (before[name] ?? "")));
}
