-- Nothing reads it: which entry wrote a row last is in last_seq. Programs of an earlier version still write it.
ALTER TABLE cases ALTER COLUMN rev SET DEFAULT 0;
