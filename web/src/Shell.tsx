import { useEffect, type ReactNode } from "react";
import { useConnected } from "./live/stream";
import { href, usePlace } from "./router";
import { useMay, useSession } from "./session";
import { Search } from "./search/Search";
import { ShortcutHelp } from "./search/ShortcutHelp";
import { useShortcuts } from "./search/shortcuts";
import { useTheme } from "./theme";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { ToastList } from "./ui/ToastList";
import { RangeProvider } from "./chart/range";
import { Audit } from "./pages/audit/Audit";
import { Drives } from "./pages/drives/Drives";
import { Events } from "./pages/events/Events";
import { Exports } from "./pages/exports/Exports";
import { Jobs } from "./pages/jobs/Jobs";
import { LiveMapPage } from "./pages/map/LiveMapPage";
import { Overview } from "./pages/overview/Overview";
import { Qos } from "./pages/qos/Qos";
import { Servers } from "./pages/servers/Servers";
import { Snapshots } from "./pages/snapshots/Snapshots";
import { Tokens } from "./pages/tokens/Tokens";
import { VolumePage } from "./pages/volumes/VolumePage";
import { Volumes } from "./pages/volumes/Volumes";
import { WhatIf } from "./pages/whatif/WhatIf";

interface Entry {
  place: string;
  name: string;
  admin?: boolean;
  show: (rest: string[]) => ReactNode;
}

const ENTRIES: Entry[] = [
  { place: "", name: "Overview", show: () => <Overview /> },
  {
    place: "volumes",
    name: "Volumes",
    show: ([pool, volume]) =>
      pool !== undefined && volume !== undefined ? <VolumePage pool={pool} volume={volume} /> : <Volumes />,
  },
  { place: "drives", name: "Tiers and drives", show: () => <Drives /> },
  { place: "map", name: "Live map", show: ([pool, volume]) => <LiveMapPage pool={pool} volume={volume} /> },
  { place: "qos", name: "Quality of service", show: () => <Qos /> },
  { place: "what-if", name: "What if", show: () => <WhatIf /> },
  { place: "snapshots", name: "Snapshots", show: () => <Snapshots /> },
  { place: "exports", name: "Exports", show: ([name]) => <Exports chosen={name} /> },
  { place: "events", name: "Events", show: () => <Events /> },
  { place: "jobs", name: "Jobs", show: () => <Jobs /> },
  { place: "servers", name: "Servers", show: () => <Servers /> },
  { place: "tokens", name: "Tokens", admin: true, show: () => <Tokens /> },
  { place: "audit", name: "Audit", admin: true, show: () => <Audit /> },
];

function Navigation({ entries, at }: { entries: Entry[]; at: string }) {
  return (
    <nav aria-label="Pages">
      {entries.map((entry) => (
        <a key={entry.place} href={href(entry.place)} aria-current={entry.place === at ? "page" : undefined}>
          {entry.name}
        </a>
      ))}
    </nav>
  );
}

/** The frame of every page. */
export function Shell({ onLogOut }: { onLogOut: () => void }) {
  const [at = "", ...rest] = usePlace();
  const session = useSession();
  const admin = useMay("admin");
  const connected = useConnected();
  const [theme, nextTheme] = useTheme();
  const [open, setOpen] = useShortcuts();
  const entries = ENTRIES.filter((entry) => !entry.admin || admin);
  const shown = entries.find((entry) => entry.place === at) ?? entries[0]!;
  const place = rest.join("/");
  useEffect(() => {
    document.title = `${shown.name} · Convect`;
    window.scrollTo(0, 0);
  }, [shown, place]);
  return (
    <div className="shell">
      <a
        className="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        Skip to content
      </a>
      <header className="top">
        <a className="brand" href={href("")}>
          <img src="/icon.svg" alt="" width="22" height="22" /> Convect
        </a>
        <span className={connected ? "link good" : "link bad"} role="status">
          {connected ? "live" : "reconnecting…"}
        </span>
        <span className="space" />
        <button
          type="button"
          className="quiet"
          aria-label="Search"
          aria-keyshortcuts="Control+K"
          onClick={() => setOpen("search")}
        >
          <span aria-hidden="true">⌕</span> <span className="word">Search</span>
        </button>
        <button
          type="button"
          className="quiet help"
          aria-label="Keyboard shortcuts"
          onClick={() => setOpen("help")}
        >
          ?
        </button>
        <span className="who">
          {session.who} <span className="badge">{session.role}</span>
        </span>
        <button type="button" className="quiet" aria-label={`Theme: ${theme}`} onClick={nextTheme}>
          <span aria-hidden="true">◐</span> {theme}
        </button>
        <button type="button" className="quiet" onClick={onLogOut}>
          Log out
        </button>
      </header>
      <Navigation entries={entries} at={shown.place} />
      <main id="content" tabIndex={-1}>
        <ErrorBoundary key={shown.place}>
          <RangeProvider key={shown.place}>{shown.show(rest)}</RangeProvider>
        </ErrorBoundary>
      </main>
      <ToastList />
      {open === "search" && (
        <Search
          pages={entries.map(({ place, name }) => ({ kind: "page", name, to: [place] }))}
          onClose={() => setOpen()}
        />
      )}
      {open === "help" && (
        <ShortcutHelp
          names={new Map(entries.map(({ place, name }) => [place, name]))}
          onClose={() => setOpen()}
        />
      )}
    </div>
  );
}
