import { api } from "../../api/client";
import { bytes } from "../../format";
import { useData } from "../../live/useData";

/** The empty, unused drives of this host, to choose from. */
export function FreeDrives({ chosen, onPick }: { chosen: string[]; onPick: (spec: string) => void }) {
  const { value } = useData("drives", (signal) => api.get("/v1/drives", { signal }));
  const free = (value?.items ?? []).filter(
    (drive) => !drive.pool && !drive.found && !drive.error && !chosen.includes(drive.spec),
  );
  if (free.length === 0) return null;
  return (
    <ul className="picks" aria-label="Free drives of this host">
      {free.map((drive) => (
        <li key={drive.spec}>
          <button type="button" className="small" onClick={() => onPick(drive.spec)}>
            + {drive.spec.replace("file:", "")} <span>{bytes(drive.size)}</span> {drive.rotation}
          </button>
        </li>
      ))}
    </ul>
  );
}
