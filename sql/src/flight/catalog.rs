//! What clients ask of a database before a statement: its tables, and what it is capable of.

use std::sync::LazyLock;

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use arrow_flight::{
    encode::FlightDataEncoderBuilder,
    error::FlightError,
    sql::{
        CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes,
        CommandGetTables, CommandGetXdbcTypeInfo, Nullable, Searchable, SqlInfo, XdbcDataType,
        metadata::{
            SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData,
            XdbcTypeInfoDataBuilder,
        },
    },
};
use futures::TryStreamExt as _;
use tonic::{Response, Status};

use super::{Rows, encode::flight_schema};
use crate::columns::Table;

const CATALOG: &str = "hindsight";
const SCHEMA: &str = "public";

/// What the server is.
pub(super) static SERVER: LazyLock<SqlInfoData> = LazyLock::new(|| {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Hindsight");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, true);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, 0_i32);
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    // The numbers are those of the wire; a failure would be of constants.
    info.build()
        .expect("the constants above are of the types that the protocol has")
});

/// Types of columns.
pub(super) static TYPES: LazyLock<XdbcTypeInfoData> = LazyLock::new(|| {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, number, size) in [
        ("VARCHAR", XdbcDataType::XdbcVarchar, None),
        ("BIGINT", XdbcDataType::XdbcBigint, Some(64)),
        ("DOUBLE", XdbcDataType::XdbcDouble, Some(64)),
        ("BOOLEAN", XdbcDataType::XdbcBit, Some(1)),
        ("TIMESTAMP", XdbcDataType::XdbcTimestamp, Some(64)),
        ("VARBINARY", XdbcDataType::XdbcVarbinary, None),
    ] {
        types.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type: number,
            column_size: size,
            nullable: Nullable::NullabilityNullable,
            case_sensitive: true,
            searchable: Searchable::Full,
            sql_data_type: number,
            ..XdbcTypeInfo::default()
        });
    }
    types
        .build()
        .expect("the constants above are of the types that the protocol has")
});

fn rows(schema: SchemaRef, batch: Result<RecordBatch, FlightError>) -> Result<Rows, Status> {
    let rows = futures::stream::iter([batch]);
    let stream = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(rows);
    Ok(Response::new(Box::pin(stream.map_err(Status::from))))
}

pub(super) fn catalogs(query: CommandGetCatalogs) -> Result<Rows, Status> {
    let mut builder = query.into_builder();
    builder.append(CATALOG);
    rows(builder.schema(), builder.build())
}

pub(super) fn schemas(query: CommandGetDbSchemas) -> Result<Rows, Status> {
    let mut builder = query.into_builder();
    builder.append(CATALOG, SCHEMA);
    rows(builder.schema(), builder.build())
}

pub(super) fn tables(query: CommandGetTables) -> Result<Rows, Status> {
    let mut builder = query.into_builder();
    for table in Table::ALL {
        let schema = flight_schema(&table.schema());
        let added = builder.append(CATALOG, SCHEMA, table.name(), "TABLE", &schema);
        added.map_err(Status::from)?;
    }
    rows(builder.schema(), builder.build())
}

pub(super) fn table_types(query: CommandGetTableTypes) -> Result<Rows, Status> {
    let mut builder = query.into_builder();
    builder.append("TABLE");
    rows(builder.schema(), builder.build())
}

pub(super) fn sql_info(query: CommandGetSqlInfo) -> Result<Rows, Status> {
    let builder = query.into_builder(&SERVER);
    rows(builder.schema(), builder.build())
}

pub(super) fn types(query: CommandGetXdbcTypeInfo) -> Result<Rows, Status> {
    let builder = query.into_builder(&TYPES);
    rows(builder.schema(), builder.build())
}
