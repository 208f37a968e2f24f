import { useState } from "react";
import { Dialog } from "./Dialog";
import { TextField } from "./Field";
import { Form } from "./Form";

export interface Confirmation {
  title: string;
  /** The consequences. */
  what: string;
  /** The name that has to be typed, as on the command line; a button is enough where nothing is lost without it. */
  name?: string;
  action: string;
  run: () => Promise<unknown>;
}

/** Asks before something is done, and for the name where something is lost, as the command line does. */
export function Confirm({ of, onClose }: { of: Confirmation; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={of.title} onClose={onClose}>
      <Form
        action={of.action}
        danger
        disabled={of.name !== undefined && typed.trim() !== of.name}
        onSubmit={async () => {
          await of.run();
          onClose();
        }}
      >
        <p>{of.what}</p>
        {of.name !== undefined && (
          <TextField
            label={`Type ${of.name} to confirm`}
            value={typed}
            onChange={setTyped}
            autoFocus
            className="mono"
          />
        )}
      </Form>
    </Dialog>
  );
}
