import { useState } from "react";
import { api } from "../../api/client";
import type { Health } from "../../api/types";
import { useMay } from "../../session";
import { numbersOf, stateOf } from "./health";

/** Health of a drive (SMART), and the locate light of its slot. */
export function DriveHealth({ of, spec }: { of: Health; spec: string }) {
  const operator = useMay("operator");
  const [on, setOn] = useState(false);
  const [failed, setFailed] = useState("");
  const locate = async () => {
    setFailed("");
    try {
      await api.post("/v1/drives/locate", { body: { drive: spec, on: !on } });
      setOn(!on);
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <span className={of.state === "failing" ? "about warn" : "about"}>SMART: {stateOf(of)}</span>
      <span className="about">{numbersOf(of)}</span>
      {operator && (
        <span className="actions">
          <button type="button" className="small" aria-pressed={on} onClick={() => void locate()}>
            {on ? "Light off" : "Locate"}
          </button>
        </span>
      )}
      {failed !== "" && (
        <span className="warn" role="alert">
          {failed}
        </span>
      )}
    </>
  );
}
