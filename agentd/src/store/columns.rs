//! How our types stand in columns. Names are the wire's names, so a row reads like the event it came from.

use jiff::Timestamp;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as TextError, StrDeserializer};
use serde::{Deserialize, Serialize};

/// An id or the variant of an enum.
pub(super) struct Text<T>(pub(super) T);

impl<T: Serialize> ToSql for Text<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(text)) => Ok(text.into()),
            Ok(other) => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is not one word").into())),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Text<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = StrDeserializer::<TextError>::new(value.as_str()?);
        T::deserialize(text).map(Self).map_err(FromSqlError::other)
    }
}

/// Anything else, as JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        text.map(ToSqlOutput::from).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_slice(value.as_bytes()?).map(Self).map_err(FromSqlError::other)
    }
}

/// `data` of the event whose `payload` this is.
pub(super) struct Data<T>(pub(super) T);

#[derive(Deserialize)]
struct Payload<T> {
    data: T,
}

impl<T: DeserializeOwned> FromSql for Data<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Json::<Payload<T>>::column_result(value).map(|Json(payload)| Self(payload.data))
    }
}

/// A sequence number or a count of tokens. SQLite has no unsigned numbers; ours end far below where that matters.
pub(super) struct Count(pub(super) u64);

impl ToSql for Count {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        u64::try_from(number).map(Self).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

/// Nanoseconds since 1970, which sort, and which lose nothing of a timestamp until the year 2262.
pub(super) struct Nanos(pub(super) Timestamp);

impl ToSql for Nanos {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0.as_nanosecond()).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for Nanos {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Timestamp::from_nanosecond(value.as_i64()?.into()).map(Self).map_err(FromSqlError::other)
    }
}
