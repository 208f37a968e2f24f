import { count } from "../format";
import type { Part } from "./figures";

/** Counts by bounds as bars, reads and writes beside each other. */
export function Spread({ title, parts }: { title: string; parts: Part[] }) {
  if (parts.length === 0) return null;
  const most = Math.max(1, ...parts.flatMap((part) => [part.reads, part.writes]));
  return (
    <table className="spread">
      <caption>{title}</caption>
      <thead>
        <tr>
          <th scope="col">Operations</th>
          <th scope="col">Reads</th>
          <th scope="col">Writes</th>
        </tr>
      </thead>
      <tbody>
        {parts.map((part) => (
          <tr key={part.name}>
            <th scope="row">{part.name}</th>
            {[part.reads, part.writes].map((value, at) => (
              <td key={at === 0 ? "reads" : "writes"}>
                <span
                  className={at === 0 ? "accent" : "second"}
                  style={{ width: `${(value / most) * 100}%` }}
                  aria-hidden="true"
                />
                {count(value)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
