// The logged-in user, and their role.
import { createContext, useContext } from "react";
import type { Role, Session } from "./api/types";

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export const SessionContext = createContext<Session>({ who: "", role: "viewer" });

export function useSession(): Session {
  return useContext(SessionContext);
}

/** Whether the logged-in user has a role, or a higher one. The daemon checks it in any case. */
export function useMay(role: Role): boolean {
  return RANK[useSession().role] >= RANK[role];
}
