-- oldest program: 11
-- An engine that is alone may write the rows of the tables after its commits, see window.go. windowed says that it does, and projected is the position
-- of the last entry whose rows are written; NULL for an engine that writes them in its commits. Earlier programs would read the tables as if they were complete.
ALTER TABLE processes ADD COLUMN IF NOT EXISTS windowed boolean NOT NULL DEFAULT false;
ALTER TABLE pulses ADD COLUMN IF NOT EXISTS projected bigint;
