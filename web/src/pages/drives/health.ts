// Health of a drive, in words. Pure.
import type { Health } from "../../api/types";

/** Summary: good, failing, or the reason why it is unknown. */
export function stateOf(health: Health): string {
  const asleep = health.asleep ? ", asleep" : "";
  return health.why === "" ? `${health.state}${asleep}` : `${health.state}${asleep}: ${health.why}`;
}

/** Figures; missing ones are omitted. */
export function numbersOf(health: Health): string {
  const told: [number | null | undefined, (value: number) => string][] = [
    [health.used_percent, (value) => `${value} % of its endurance used`],
    [health.spare_percent, (value) => `${value} % spare`],
    [health.temperature_c, (value) => `${value} °C`],
    [health.power_on_hours, (value) => `powered on for ${value.toLocaleString("en")} h`],
    [health.reallocated, (value) => `${value} sectors reallocated`],
    [health.pending, (value) => `${value} sectors pending`],
    [health.media_errors, (value) => `${value} media errors`],
  ];
  const words = told.flatMap(([value, say]) => (typeof value === "number" ? [say(value)] : []));
  return [`${health.model} ${health.serial}`.trim(), ...words].filter((word) => word !== "").join(", ");
}
