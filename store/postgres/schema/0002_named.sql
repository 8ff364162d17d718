-- Where the list of what somebody asked for looks, whoever it was. What the engine asks for itself is not in it.
CREATE INDEX journal_named ON journal (seq) WHERE actor <> '';
