package postgres

import (
	"fmt"
	"time"
)

// The parameters of a connection string that are Tasq's, and not sent to the server.
const (
	schemaKeyword = "tasq_schema" // see [Schema]
	pollKeyword   = "tasq_poll"   // see [Poll]
	windowKeyword = "tasq_window" // see [Window]
)

// takeParameters moves the parameters that are Tasq's from the connection string to the settings.
func (db *database) takeParameters() error {
	if err := db.takeSchema(); err != nil {
		return err
	}
	if every, given := db.take(pollKeyword); given {
		d, err := time.ParseDuration(every)
		if err != nil || d <= 0 {
			return fmt.Errorf("the connection string of the database: %s=%q: say how often, as in 1s", pollKeyword, every)
		}
		db.set.poll = d
	}
	if age, given := db.take(windowKeyword); given {
		d, err := time.ParseDuration(age)
		if err != nil || d < 0 {
			return fmt.Errorf("the connection string of the database: %s=%q: say how long, as in 20ms", windowKeyword, age)
		}
		db.set.window = min(d, maxAge)
	}
	return nil
}

func (db *database) take(keyword string) (value string, given bool) {
	value, given = db.config.RuntimeParams[keyword]
	delete(db.config.RuntimeParams, keyword)
	return value, given
}

// takeSchema decides the schema. The option wins: a program that works on a schema of its own, such as a temporary one, must not get another one.
func (db *database) takeSchema() error {
	name, given := db.take(schemaKeyword)
	if given && name == "" {
		return fmt.Errorf("the connection string of the database: %s is empty: name the schema", schemaKeyword)
	}
	if other, is := db.config.RuntimeParams["schema"]; is {
		return fmt.Errorf("the connection string of the database: schema=%q is no parameter: write %s=%s, or use postgres.Schema in a program", other, schemaKeyword, other)
	}
	switch {
	case db.set.schema != "":
	case given:
		db.set.schema = name
	default:
		db.set.schema = DefaultSchema
	}
	if !schemaName.MatchString(db.set.schema) {
		return fmt.Errorf("%q cannot name the schema: use small letters, digits and '_', at most 40 in all", db.set.schema)
	}
	return nil
}
