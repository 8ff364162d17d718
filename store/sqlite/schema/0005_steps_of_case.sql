-- Where the steps of a case are found. By their owners each item and job of the case was looked for: a case may have a hundred thousand.
CREATE INDEX steps_case ON steps (case_id);
