import { useLive } from "../../live/stream";
import { Card, Page } from "../../ui/Page";
import { JobRow } from "./JobRow";

export function Jobs() {
  const jobs = useLive().jobs;
  return (
    <Page title="Jobs" about="Long work: evacuations, deletions, scrubs, drives that are brought up to date.">
      <Card>
        {jobs.length === 0 ? (
          <p className="empty">There was no long work yet.</p>
        ) : (
          jobs.map((job) => <JobRow key={job.id} job={job} />)
        )}
      </Card>
    </Page>
  );
}
