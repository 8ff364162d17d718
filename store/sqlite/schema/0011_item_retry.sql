-- The retry policy that a repair gave a work item.
ALTER TABLE work_items ADD COLUMN retry TEXT;
