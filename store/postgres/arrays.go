package postgres

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasq-dev/tasq/store/state"
)

// Rows are written many at a time, each column as an array. The arrays are built directly in the server's binary
// format, since the driver would look up the encoding for each value again, which takes longer.
//
//	dimensions  has NULL  type of the values  length  first index  value 1          value 2
//	1           0 or 1    oid                 2       1            length, bytes    -1, for NULL
//
// The bigints 7 and NULL are 36 bytes, here as numbers of 4 bytes and the value of 8 bytes:
//
//	1   1   20   2   1     8   7   -1
type (
	uuidArray     []byte
	textArray     []byte
	bigintArray   []byte
	integerArray  []byte
	smallintArray []byte
	boolArray     []byte
)

const (
	arrayHeader  = 20
	hasNull      = 7 // offset in the header
	nullLength   = 0xffffffff
	lengthLength = 4
)

// newArray begins an array of n values with room for the given number of bytes.
// Whether there is a NULL is known only when all values were added: addNull sets it.
func newArray(n int, of uint32, bytes int) []byte {
	b := make([]byte, 0, arrayHeader+n*lengthLength+bytes)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, of)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return binary.BigEndian.AppendUint32(b, 1)
}

// A NULL has a length and no bytes.
func addNull(b []byte) []byte {
	b[hasNull] = 1
	return binary.BigEndian.AppendUint32(b, nullLength)
}

func addNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n))
}

// ids encodes ids; a zero id is NULL.
func ids[T any, K ~[16]byte](list []T, of func(T) K) uuidArray {
	b := newArray(len(list), pgtype.UUIDOID, len(list)*len(K{}))
	for _, v := range list {
		if id := [16]byte(of(v)); id == [16]byte{} {
			b = addNull(b)
		} else {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(id))), id[:]...)
		}
	}
	return b
}

func texts[T any](list []T, of func(T) string) textArray {
	return encoded(list, lengths(list, of), func(b []byte, v T) []byte { return append(b, of(v)...) })
}

// optionalTexts encodes texts; an empty one is NULL.
func optionalTexts[T any, S ~string | ~[]byte](list []T, of func(T) S) textArray {
	return optionalEncoded(list, lengths(list, of), func(b []byte, v T) []byte { return append(b, of(v)...) })
}

// The array is then allocated once, at the size that it will have.
func lengths[T any, S ~string | ~[]byte](list []T, of func(T) S) (bytes int) {
	for _, v := range list {
		bytes += len(of(v))
	}
	return bytes
}

// encoded encodes the texts that a function appends, with room for the given number of bytes.
// The room is an estimate: a text that needs more makes the array grow.
func encoded[T any](list []T, bytes int, add func(b []byte, v T) []byte) textArray {
	b := newArray(len(list), pgtype.TextOID, bytes)
	for _, v := range list {
		b = addText(b, v, add)
	}
	return b
}

// optionalEncoded is like encoded, but the value is NULL if nothing is appended.
//
// The length of a value precedes it, but is known only after the value was appended: four bytes are reserved for it,
// and get the mark of NULL if nothing was appended.
func optionalEncoded[T any](list []T, bytes int, add func(b []byte, v T) []byte) textArray {
	b := newArray(len(list), pgtype.TextOID, bytes)
	for _, v := range list {
		at := len(b)
		if b = addText(b, v, add); len(b) == at+lengthLength {
			b = addNull(b[:at])
		}
	}
	return b
}

func addText[T any](b []byte, v T, add func([]byte, T) []byte) []byte {
	at := len(b)
	b = add(binary.BigEndian.AppendUint32(b, 0), v)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-lengthLength))
	return b
}

// Numbers have a fixed length, so the size of the array is known.
func numbers[T any](list []T, of func(T) int64) bigintArray {
	b := newArray(len(list), pgtype.Int8OID, 8*len(list))
	for _, v := range list {
		b = addNumber(b, of(v))
	}
	return b
}

// These fit into 32 bits: a priority is checked when it is given, and a count such as a generation is bounded by what
// one case can do.
func integers[T any](list []T, of func(T) int) integerArray {
	b := newArray(len(list), pgtype.Int4OID, 4*len(list))
	for _, v := range list {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(int32(of(v))))
	}
	return b
}

func smallints[T any](list []T, of func(T) int16) smallintArray {
	b := newArray(len(list), pgtype.Int2OID, 2*len(list))
	for _, v := range list {
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), uint16(of(v)))
	}
	return b
}

// unknown is a number that arrays encode as NULL.
const unknown = -1

func optionalNumbers[T any](list []T, of func(T) int64) bigintArray {
	b := newArray(len(list), pgtype.Int8OID, 8*len(list))
	for _, v := range list {
		if n := of(v); n == unknown {
			b = addNull(b)
		} else {
			b = addNumber(b, n)
		}
	}
	return b
}

// times encodes times that are never NULL.
// Times are microseconds in a bigint, the same numbers as in SQLite.
func times[T any](list []T, of func(T) time.Time) bigintArray {
	return numbers(list, func(v T) int64 { return state.Micros(of(v)) })
}

// optionalTimes encodes times; a zero time is NULL.
func optionalTimes[T any](list []T, of func(T) time.Time) bigintArray {
	b := newArray(len(list), pgtype.Int8OID, 8*len(list))
	for _, v := range list {
		if t := of(v); t.IsZero() {
			b = addNull(b)
		} else {
			b = addNumber(b, state.Micros(t))
		}
	}
	return b
}

// A boolean is a value of one byte.
func flags[T any](list []T, of func(T) bool) boolArray {
	b := newArray(len(list), pgtype.BoolOID, len(list))
	for _, v := range list {
		b = binary.BigEndian.AppendUint32(b, 1)
		if of(v) {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// value is the value of an array of length one, in the server's format.
type value []byte

// onlyValues returns the values of arrays of length one; nil for NULL.
// It reads them out of the encoded arrays, so each column is encoded by one function, whether there is one row or
// many.
func onlyValues(columns []any) []any {
	all := make([]any, len(columns))
	for i, column := range columns {
		if array := bytesOf(column); binary.BigEndian.Uint32(array[arrayHeader:]) != nullLength {
			all[i] = value(array[arrayHeader+lengthLength:])
		}
	}
	return all
}

// takeEncoded registers codecs for these arrays and values with a connection.
//
// The driver looks up a codec for each type of the server. Its own codec for arrays encodes element by element; this
// one is tried first and copies the bytes. The same holds for single values. Reading uses the driver's codecs.
func takeEncoded(m *pgtype.Map) {
	for _, oid := range []uint32{pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.Int4ArrayOID, pgtype.BoolArrayOID,
		pgtype.UUIDOID, pgtype.TextOID, pgtype.Int8OID, pgtype.Int4OID, pgtype.BoolOID} {
		if known, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: known.Name, OID: oid, Codec: encodedCodec{known.Codec}})
		}
	}
}

type encodedCodec struct{ pgtype.Codec }

// PlanEncode implements [pgtype.Codec]. Texts are the same in both formats.
func (c encodedCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, v any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode || oid == pgtype.TextOID {
		switch v.(type) {
		case uuidArray, textArray, bigintArray, integerArray, boolArray, value:
			return asIs{}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, v)
}

type asIs struct{}

// Encode implements [pgtype.EncodePlan].
func (asIs) Encode(v any, b []byte) ([]byte, error) { return append(b, bytesOf(v)...), nil }

// bytesOf returns the bytes of what this file encodes; nil for any other value, which the codecs of the driver
// encode.
func bytesOf(v any) []byte {
	switch v := v.(type) {
	case uuidArray:
		return v
	case textArray:
		return v
	case bigintArray:
		return v
	case integerArray:
		return v
	case smallintArray:
		return v
	case boolArray:
		return v
	case value:
		return v
	}
	return nil
}
