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

	pending, err := sqlkit.Pending(all, nil)
	require.NoError(t, err)
	require.Equal(t, all, pending)

	pending, err = sqlkit.Pending(all, applied(all[:1]))
	require.NoError(t, err)
	require.Equal(t, all[1:], pending)

	pending, err = sqlkit.Pending(all, applied(all))
	require.NoError(t, err)
	require.Empty(t, pending)
}

func TestANewerSchemaSaysBothVersions(t *testing.T) {
	all, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "a", "0002_more.sql": "b"}))
	require.NoError(t, err)
	_, err = sqlkit.Pending(all[:1], applied(all))
	require.ErrorIs(t, err, sqlkit.ErrNewer)
	require.ErrorContains(t, err, "version 2")
	require.ErrorContains(t, err, "up to 1")
}

func TestAnEditedMigrationIsFoundOut(t *testing.T) {
	before, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "CREATE TABLE a (x)"}))
	require.NoError(t, err)
	after, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "CREATE TABLE a (x, y)"}))
	require.NoError(t, err)
	_, err = sqlkit.Pending(after, applied(before))
	require.ErrorIs(t, err, sqlkit.ErrChanged)
}

func TestLoadRefusesGapsAndStrangeNames(t *testing.T) {
	_, err := sqlkit.Load(folder(map[string]string{"0001_init.sql": "", "0003_more.sql": ""}))
	require.ErrorContains(t, err, "should be 2")
	_, err = sqlkit.Load(folder(map[string]string{"init.sql": ""}))
	require.ErrorContains(t, err, "NUMBER_NAME.sql")
}
