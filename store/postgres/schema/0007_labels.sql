-- The cases of a label, in the order of their creation. An index of the column of labels as a whole has no order: of a frequent label it
-- would have to read all cases, and the server's guess of how frequent a label is, is too rough to choose between it and a scan.
-- The triggers keep the table an index of the column, also for engines of an earlier version.
CREATE TABLE IF NOT EXISTS case_labels (
    name  text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    id    uuid NOT NULL,
    root  uuid NOT NULL,
    PRIMARY KEY (name, value, id)
);
INSERT INTO case_labels (name, value, id, root)
SELECT l.key, l.value, c.id, c.root FROM cases c CROSS JOIN LATERAL jsonb_each_text(c.labels::jsonb) l WHERE c.labels IS NOT NULL
ON CONFLICT DO NOTHING;
DROP INDEX IF EXISTS cases_labels;

CREATE OR REPLACE FUNCTION label_case() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO case_labels (name, value, id, root) SELECT l.key, l.value, NEW.id, NEW.root FROM jsonb_each_text(NEW.labels::jsonb) l;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER cases_labeled AFTER INSERT ON cases FOR EACH ROW WHEN (NEW.labels IS NOT NULL) EXECUTE FUNCTION label_case();

CREATE OR REPLACE FUNCTION unlabel_case() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM case_labels t USING jsonb_each_text(OLD.labels::jsonb) l WHERE t.name = l.key AND t.value = l.value AND t.id = OLD.id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER cases_unlabeled AFTER DELETE ON cases FOR EACH ROW WHEN (OLD.labels IS NOT NULL) EXECUTE FUNCTION unlabel_case();
