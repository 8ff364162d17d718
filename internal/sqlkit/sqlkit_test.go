package sqlkit_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/sqlkit"
)

func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func applied(all []sqlkit.Migration) []sqlkit.Applied {
	var list []sqlkit.Applied
	for _, m := range all {
		list = append(list, sqlkit.Applied{Version: m.Version, Checksum: m.Checksum})
	}
	return list
}

func TestOnlyWhatIsMissingIsPending(t *testing.T) {
	all, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "CREATE TABLE a (x)",
		"0002_more.sql": "CREATE TABLE b (x)"}))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "more", all[1].Name)

	pending, err := sqlkit.Pending(all, nil, 0)
	require.NoError(t, err)
	require.Equal(t, all, pending)

	pending, err = sqlkit.Pending(all, applied(all[:1]), 0)
	require.NoError(t, err)
	require.Equal(t, all[1:], pending)

	pending, err = sqlkit.Pending(all, applied(all), 0)
	require.NoError(t, err)
	require.Empty(t, pending)
}

func TestANewerSchemaSaysBothVersions(t *testing.T) {
	all, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "a", "0002_more.sql": "b"}))
	require.NoError(t, err)
	_, err = sqlkit.Pending(all[:1], applied(all), 0)
	require.ErrorIs(t, err, sqlkit.ErrNewer)
	require.ErrorContains(t, err, "version 2")
	require.ErrorContains(t, err, "up to 1")
}

// A migration that only adds leaves programs running that do not know it. One that names a program excludes those before it, and
// so do all later ones.
func TestASchemaNamesTheOldestProgram(t *testing.T) {
	all, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "a", "0002_more.sql": "b", "0003_other.sql": "-- oldest program: 2\nc", "0004_last.sql": "d"}))
	require.NoError(t, err)
	require.Equal(t, 1, sqlkit.Oldest(all[:2]))
	require.Equal(t, 2, sqlkit.Oldest(all[2:3]))
	require.Equal(t, 2, sqlkit.Oldest(all))

	pending, err := sqlkit.Pending(all[:1], applied(all[:2]), 1)
	require.NoError(t, err)
	require.Empty(t, pending)
	pending, err = sqlkit.Pending(all[:2], applied(all), 2)
	require.NoError(t, err)
	require.Empty(t, pending)
	_, err = sqlkit.Pending(all[:1], applied(all), 2)
	require.ErrorIs(t, err, sqlkit.ErrNewer)
	require.ErrorContains(t, err, "it has version 4, on which programs run that know version 2, and this program knows up to 1; use a newer program")

	changed := applied(all)
	changed[0].Checksum = "other"
	_, err = sqlkit.Pending(all[:2], changed, 2)
	require.ErrorIs(t, err, sqlkit.ErrChanged)

	for _, n := range []string{"0", "4", "99999999999999999999"} {
		_, err = sqlkit.Load(folder(map[string]string{"0001_init.sql": "a", "0002_more.sql": "b", "0003_other.sql": "-- oldest program: " + n + "\nc"}))
		require.ErrorContains(t, err, "should be from 1 to 3")
	}
}

func TestAnEditedMigrationIsFoundOut(t *testing.T) {
	before, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "CREATE TABLE a (x)"}))
	require.NoError(t, err)
	after, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "CREATE TABLE a (x, y)"}))
	require.NoError(t, err)
	_, err = sqlkit.Pending(after, applied(before), 0)
	require.ErrorIs(t, err, sqlkit.ErrChanged)
}

func TestLoadRefusesGapsAndStrangeNames(t *testing.T) {
	_, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "", "0003_more.sql": ""}))
	require.ErrorContains(t, err, "should be 2")
	_, err = sqlkit.Load(folder(map[string]string{"init.sql": ""}))
	require.ErrorContains(t, err, "NUMBER_NAME.sql")
}
