import type { ReactNode } from "react";

interface Props {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  error?: string | undefined;
  children: ReactNode;
}

/** A page's head, what went wrong with it, and what it shows. */
export function Page({ title, about, actions, error, children }: Props) {
  return (
    <>
      <header className="page-head">
        <div>
          <h1>{title}</h1>
          {about && <p className="about">{about}</p>}
        </div>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {error !== undefined && (
        <p className="problem" role="alert">
          {error}
        </p>
      )}
      {children}
    </>
  );
}

/** A part of a page. */
export function Card({
  title,
  actions,
  children,
}: {
  title?: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="card">
      {(title || actions) && (
        <header>
          <h2>{title}</h2>
          {actions && <div className="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
