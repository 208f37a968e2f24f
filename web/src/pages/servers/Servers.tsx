import { useState } from "react";
import { api } from "../../api/client";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Page } from "../../ui/Page";
import { AddServer } from "./AddServer";
import { ServerCard } from "./ServerCard";

/** How often it is asked again, in seconds. */
const EVERY = 3;

/** This daemon and others, side by side. */
export function Servers() {
  const { value, error, reload } = useData("servers", (signal) => api.get("/v1/servers", { signal }), EVERY);
  const admin = useMay("admin");
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Confirmation>();

  function askToRemove(name: string) {
    setRemoving({
      title: `Remove ${name}`,
      what: "It is no longer shown here, and its token is deleted. The other server is not changed.",
      name,
      action: "Remove server",
      run: () => api.delete("/v1/servers/{server}", { path: { server: name } }),
    });
  }

  return (
    <Page
      title="Servers"
      error={error}
      about="This daemon and other daemons, as seen from this one."
      actions={
        admin && (
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            Add a server
          </button>
        )
      }
    >
      {value && (
        <div className="servers">
          <ServerCard of={value.this} />
          {value.items.map((server) => (
            <ServerCard
              key={server.name}
              of={server}
              onRemove={admin ? () => askToRemove(server.name) : undefined}
            />
          ))}
        </div>
      )}
      {adding && (
        <AddServer
          onClose={() => {
            setAdding(false);
            reload();
          }}
        />
      )}
      {removing && <Confirm of={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}
