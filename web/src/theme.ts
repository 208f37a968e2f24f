// Dark and light theme: the system's, until the user chooses.
import { useEffect, useState } from "react";

type Theme = "system" | "light" | "dark";
const KEY = "convect-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function stored(): Theme {
  const theme = localStorage.getItem(KEY);
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(KEY, theme);
  }, [theme]);
  return [theme, () => setTheme(NEXT[theme])];
}
