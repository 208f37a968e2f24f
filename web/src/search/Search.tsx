import { useId, useState, type KeyboardEvent } from "react";
import { api } from "../api/client";
import { useData } from "../live/useData";
import { go } from "../router";
import { Dialog } from "../ui/Dialog";
import { type Entry, found } from "./find";

/** Everything with a name, looked up when the search is opened. */
async function look(signal: AbortSignal): Promise<Entry[]> {
  const [pools, volumes, exports, snapshots] = await Promise.all([
    api.get("/v1/pools", { signal }),
    api.get("/v1/volumes", { signal }),
    api.get("/v1/exports", { signal }),
    api.get("/v1/snapshots", { query: { wait_s: 0 }, signal }),
  ]);
  return [
    ...pools.items.map(({ name }): Entry => ({ kind: "pool", name, to: ["drives"] })),
    ...volumes.items.map(({ pool, name }): Entry => ({
      kind: "volume",
      name: `${pool}/${name}`,
      to: ["volumes", pool, name],
    })),
    ...exports.items.map(({ name }): Entry => ({ kind: "export", name, to: ["exports", name] })),
    ...pools.items.flatMap(({ vdrives }) =>
      vdrives.flatMap(({ drives }) =>
        drives.map(({ spec }): Entry => ({ kind: "drive", name: spec, to: ["drives"] })),
      ),
    ),
    ...snapshots.items.map(({ pool, volume, name }): Entry => ({
      kind: "snapshot",
      name: `${pool}/${volume}@${name}`,
      to: ["volumes", pool, volume],
    })),
  ];
}

/** Finds pages and objects by their names, by keyboard alone. */
export function Search({ pages, onClose }: { pages: Entry[]; onClose: () => void }) {
  const { value, error } = useData("search", look, undefined, "timed");
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const results = found([...pages, ...(value ?? [])], text);
  const chosen = Math.min(at, results.length - 1);

  function open(entry: Entry | undefined) {
    if (!entry) return;
    onClose();
    go(...entry.to);
  }
  function onKey(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(results.length, 1));
    else if (event.key === "ArrowUp") setAt((chosen + results.length - 1) % Math.max(results.length, 1));
    else if (event.key === "Enter") open(results[chosen]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog title="Search" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Search pages, pools, volumes, snapshots, exports and drives"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={text}
        onKeyDown={onKey}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
      />
      {error !== undefined && <p className="problem">{error}</p>}
      <ul id={id} className="results" role="listbox" aria-label="Results">
        {results.map((entry, index) => (
          <li
            key={`${entry.kind} ${entry.name}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            ref={(row) => {
              if (index === chosen) row?.scrollIntoView({ block: "nearest" });
            }}
            onClick={() => open(entry)}
          >
            <span>{entry.name}</span> <small>{entry.kind}</small>
          </li>
        ))}
      </ul>
      {results.length === 0 && <p className="empty">{value ? "Nothing found." : "Looking…"}</p>}
    </Dialog>
  );
}
