import { useLive } from "../../live/stream";
import { Card, Page } from "../../ui/Page";
import { JobRow } from "./JobRow";

export function Jobs() {
  const jobs = useLive().jobs;
  return (
    <Page title="Jobs" about="Long-running work: evacuations, deletions, scrubs, resyncs.">
      <Card>
        {jobs.length === 0 ? (
          <p className="empty">No jobs yet.</p>
        ) : (
          jobs.map((job) => <JobRow key={job.id} job={job} />)
        )}
      </Card>
    </Page>
  );
}
