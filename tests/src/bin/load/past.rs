//! A long past, made from a short one: one real session is copied many times, each with ids and a chain of its own.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

/// Where an id may stand in a text: 36 characters of hexadecimal digits and four dashes.
const ID: usize = 36;

/// Copies the one session that a database holds until there are `sessions` of them.
///
/// # Errors
/// What SQLite says.
pub(crate) fn multiply(database: &Path, sessions: u32) -> rusqlite::Result<()> {
    let mut db = Connection::open(database)?;
    db.pragma_update(None, "foreign_keys", false)?;
    let tables: Vec<String> = db
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta') AND name NOT LIKE 'sqlite_%'",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let rows: Vec<(String, Vec<String>, Vec<Vec<Value>>)> =
        tables.into_iter().map(|table| whole(&db, table)).collect::<rusqlite::Result<_>>()?;
    let tx = db.transaction()?;
    for copy in 1..sessions {
        for (table, columns, rows) in &rows {
            let places = vec!["?"; columns.len()].join(", ");
            let mut insert = tx.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?;
            let mut head = [0; 32];
            for row in rows {
                let mut values: Vec<Value> = row.iter().map(|value| renamed(value, copy)).collect();
                if table == "event" {
                    chain(columns, &mut values, &mut head);
                }
                insert.execute(rusqlite::params_from_iter(values))?;
            }
        }
    }
    tx.commit()
}

fn whole(db: &Connection, table: String) -> rusqlite::Result<(String, Vec<String>, Vec<Vec<Value>>)> {
    let mut all = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))?;
    let columns: Vec<String> = all.column_names().into_iter().map(str::to_owned).collect();
    let row =
        |row: &Row<'_>| (0..columns.len()).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>();
    let rows = all.query_map([], row)?.collect::<Result<_, _>>()?;
    Ok((table, columns, rows))
}

/// The hashes that an event has in its new place.
fn chain(columns: &[String], values: &mut [Value], head: &mut [u8; 32]) {
    let place = |name: &str| columns.iter().position(|column| column == name).unwrap_or_default();
    let Some(Value::Text(payload)) = values.get(place("payload")) else { return };
    let hash = *blake3::Hasher::new().update(head).update(payload.as_bytes()).finalize().as_bytes();
    values[place("prev_hash")] = Value::Blob(head.to_vec());
    values[place("hash")] = Value::Blob(hash.to_vec());
    *head = hash;
}

/// Every id in a text ends in the copy's number, so its order in time stays.
fn renamed(value: &Value, copy: u32) -> Value {
    let Value::Text(text) = value else { return value.clone() };
    let mut text = text.clone().into_bytes();
    let mut at = 0;
    while at + ID <= text.len() {
        if is_id(&text[at..at + ID]) {
            text[at + ID - 8..at + ID].copy_from_slice(format!("ffff{copy:04x}").as_bytes());
            at += ID;
        } else {
            at += 1;
        }
    }
    Value::Text(String::from_utf8(text).unwrap_or_default())
}

fn is_id(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}
