import { useState } from "react";
import { api, addressOf } from "../../api/client";
import type { Snapshot } from "../../api/types";
import { bytes, time } from "../../format";
import { useData } from "../../live/useData";
import { href } from "../../router";
import { Dialog } from "../../ui/Dialog";
import { SelectField, TextField } from "../../ui/Field";

/**
 * A snapshot as a file. The browser saves it while receiving, whatever its size, and shows the progress; so does the page
 * of jobs.
 */
export function SendSnapshot({ of, onClose }: { of: Snapshot; onClose: () => void }) {
  const { pool, volume } = of;
  const { value } = useData(`snapshots of ${pool}/${volume}`, (signal) =>
    api.get("/v1/snapshots", { query: { pool, volume, wait_s: 0 }, signal }),
  );
  const before = (value?.items ?? []).filter(
    (known) => known.name !== of.name && known.created_s <= of.created_s,
  );
  const [from, setFrom] = useState("");
  const [resume, setResume] = useState("");
  const address = addressOf("/v1/snapshots/{pool}/{volume}/{snapshot}/stream", {
    path: { pool, volume, snapshot: of.name },
    query: resume.trim() ? { resume: resume.trim() } : from ? { from } : {},
  });
  return (
    <Dialog title={`Send ${pool}/${volume}@${of.name}`} onClose={onClose}>
      <div className="form">
        <p>
          As a file, from which a volume is made or brought on elsewhere. It is as long as what was written,{" "}
          {bytes(of.size)} at most; how far it is, is seen at <a href={href("jobs")}>Jobs</a>, too.
        </p>
        <SelectField
          label="Content"
          value={from}
          options={[
            ["", "full"] as const,
            ...before.map(
              (known) => [known.name, `changes since ${known.name}, ${time(known.created_s)}`] as const,
            ),
          ]}
          onChange={setFrom}
        />
        <TextField
          label="Resume an interrupted transfer"
          value={resume}
          onChange={setResume}
          className="mono"
          placeholder="resume token from the receiving volume's page"
        />
        <footer>
          <a
            className="button primary"
            href={address}
            download={`${volume}@${of.name}${from && !resume.trim() ? `-since-${from}` : ""}.convect`}
            onClick={onClose}
          >
            Save stream
          </a>
        </footer>
      </div>
    </Dialog>
  );
}
