import { Fragment, type ReactNode } from "react";

/** Names and values; what has no value is left out. */
export function Facts({ of }: { of: [string, ReactNode][] }) {
  const told = of.filter(
    ([, value]) => value !== undefined && value !== null && value !== "" && value !== false,
  );
  return (
    <dl className="facts">
      {told.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
