import { useCallback, useEffect, useState } from "react";
import { api, setCsrf, whenLoggedOut } from "./api/client";
import type { Session } from "./api/types";
import { stream } from "./live/stream";
import { LogIn } from "./pages/login/LogIn";
import { SessionContext } from "./session";
import { Shell } from "./Shell";

/** The login form, or the page of a logged-in user. */
export function App() {
  const [session, setSession] = useState<Session | null>();

  const begin = useCallback((begun: Session) => {
    setCsrf(begun.csrf ?? undefined);
    stream.start();
    setSession(begun);
  }, []);
  const end = useCallback(() => {
    setCsrf(undefined);
    stream.stop();
    setSession(null);
  }, []);

  useEffect(() => {
    whenLoggedOut(end);
    api.get("/v1/login").then(begin, end);
  }, [begin, end]);

  if (session === undefined) return null;
  if (session === null) return <LogIn onLogIn={begin} />;
  return (
    <SessionContext value={session}>
      <Shell onLogOut={() => void api.delete("/v1/login").finally(end)} />
    </SessionContext>
  );
}
