// Actions on many volumes: bounded, and what failed is told by name. Pure but for what is called.
import type { Volume } from "../../api/types";
import { many } from "../../format";

/** Requests at once: more would take the connections that the page itself needs. */
const AT_ONCE = 4;

export interface Outcome {
  done: number;
  failures: string[];
}

/** Calls `act` for every item, a few at once; failures do not stop the others. */
export async function forAll<T>(
  items: readonly T[],
  name: (item: T) => string,
  act: (item: T) => Promise<unknown>,
): Promise<Outcome> {
  const outcome: Outcome = { done: 0, failures: [] };
  const rest = [...items];
  const work = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      try {
        await act(item);
        outcome.done += 1;
      } catch (error) {
        outcome.failures.push(`${name(item)}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}

/** The failures of an outcome as one error: the first three, and how many more. */
export function failuresOf({ failures }: Outcome, all: number): string | undefined {
  if (failures.length === 0) return undefined;
  const more = failures.length > 3 ? `; and ${failures.length - 3} more` : "";
  return `${failures.length} of ${many(all, "volume")} failed. ${failures.slice(0, 3).join("; ")}${more}`;
}

/** The volumes by their pools. */
export function byPool(volumes: readonly Volume[]): Map<string, string[]> {
  const pools = new Map<string, string[]>();
  for (const { pool, name } of volumes) pools.set(pool, [...(pools.get(pool) ?? []), name]);
  return pools;
}

/** What deleting these volumes costs, and whether it has to be confirmed in writing: not when all are empty and unused. */
export function riskOf(volumes: readonly Volume[]): { what: string; isLoss: boolean } {
  const written = volumes.filter((volume) => Math.max(volume.mapped, volume.held ?? 0) > 0).length;
  const exported = volumes.filter((volume) => volume.exports.length > 0).length;
  if (written + exported === 0) {
    const what =
      volumes.length === 1
        ? "The volume is empty and not exported."
        : "The volumes are empty and not exported.";
    return { what, isLoss: false };
  }
  const lost = `${many(volumes.length, "volume")} with everything in ${volumes.length === 1 ? "it" : "them"}`;
  return { what: `Deletes ${lost}: ${written} with data, ${exported} exported to hosts.`, isLoss: true };
}
