import { useState } from "react";
import { Dialog } from "../ui/Dialog";
import { Facts } from "../ui/Facts";
import { CheckField } from "../ui/Field";
import { LETTERS, setSingleKeys, usesSingleKeys } from "./shortcuts";

/** The keyboard shortcuts; `names` are those of the pages by their places. */
export function ShortcutHelp({ names, onClose }: { names: Map<string, string>; onClose: () => void }) {
  const [single, setSingle] = useState(usesSingleKeys);
  const pages = Object.entries(LETTERS).map(([letter, place]): [string, string] => [
    `g ${letter}`,
    names.get(place) ?? place,
  ]);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <Facts
        of={[
          ["Ctrl-K or /", "Search pages, pools, volumes, snapshots, exports and drives"],
          ["?", "This help"],
          ["Esc", "Close a dialog"],
          ["Double click", "Leave the zoom of the charts"],
          ...pages,
        ]}
      />
      <CheckField
        label="Shortcuts without Ctrl"
        checked={single}
        onChange={(use) => {
          setSingle(use);
          setSingleKeys(use);
        }}
      />
    </Dialog>
  );
}
