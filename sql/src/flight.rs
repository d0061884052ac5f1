//! Arrow Flight SQL: statements of clients such as ADBC, JDBC and Grafana, each with the token of its caller.
//!
//! This server keeps nothing of a caller and has no rights of its own: the token of each call is shown to the Hindsight
//! server, first to learn whether that knows the caller, and then for every row that the call reads. Tickets and
//! handles of prepared statements are the text of the statement.

mod caller;
mod catalog;
mod encode;

use std::{path::PathBuf, pin::Pin, sync::Arc};

use arrow::datatypes::SchemaRef;
use arrow_flight::{
    Action, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse,
    Ticket,
    flight_service_server::{FlightService, FlightServiceServer},
    sql::{
        ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
        ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetDbSchemas,
        CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
        CommandPreparedStatementQuery, CommandStatementQuery, DoPutPreparedStatementResult,
        ProstMessageExt, SqlInfo, TicketStatementQuery,
        server::{FlightSqlService, PeekableFlightDataStream},
    },
};
use futures::{Stream, StreamExt as _};
use prost::Message as _;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Identity, Server, ServerTlsConfig},
};

use self::{
    caller::Caller,
    encode::{encoded, flight_schema, ipc},
};
use crate::{Engine, Error, Scope};

type FlightStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Rows = Response<<Flight as FlightService>::DoGetStream>;

/// Largest message of a client: a statement, and what frames it.
const MESSAGE: usize = 1 << 20;

/// Where and how the server listens.
#[derive(Debug)]
pub struct Listening {
    /// The bound socket that connections are taken from.
    pub listener: TcpListener,
    /// Files with a certificate and its key, in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Statements that are run at once.
    pub statements: usize,
}

#[derive(Debug, Clone)]
struct Flight {
    engine: Arc<Engine>,
    /// Of which parents rows are asked where a caller names none.
    scope: Scope,
    turns: Arc<Semaphore>,
}

/// Serves until `stopping` is over. It fails if the certificate cannot be used.
pub async fn serve(
    engine: Arc<Engine>,
    scope: Scope,
    listening: Listening,
    stopping: impl Future<Output = ()>,
) -> Result<(), Error> {
    let flight = Flight {
        engine,
        scope,
        turns: Arc::new(Semaphore::new(listening.statements)),
    };
    let wrong =
        |what: &str, error: &dyn std::error::Error| Error::Statement(format!("{what}: {error}"));
    let mut server = Server::builder();
    if let Some((certificate, key)) = &listening.tls {
        let read = |path: &PathBuf| {
            let read = std::fs::read(path);
            read.map_err(|error| wrong(&format!("`{}` cannot be read", path.display()), &error))
        };
        let identity = Identity::from_pem(read(certificate)?, read(key)?);
        let tls = ServerTlsConfig::new().identity(identity);
        server = server
            .tls_config(tls)
            .map_err(|error| wrong("the certificate or its key cannot be used", &error))?;
    }
    let service = FlightServiceServer::new(flight).max_decoding_message_size(MESSAGE);
    let incoming = TcpListenerStream::new(listening.listener);
    let serving = server
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, stopping);
    serving
        .await
        .map_err(|error| Error::Other(format!("the Flight SQL server ended: {error}")))
}

impl Flight {
    /// Whoever calls, once the Hindsight server knows them.
    async fn caller<T: Sync>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let caller = Caller::of(&self.engine, &self.scope, request.metadata())?;
        caller.check().await?;
        Ok(caller)
    }

    /// The columns of a statement, of which nothing is run.
    async fn columns<T: Sync>(&self, request: &Request<T>, sql: &str) -> Result<SchemaRef, Status> {
        let caller = self.caller(request).await?;
        let statement = self
            .engine
            .statement(Some(caller.client), caller.scope, sql);
        let statement = statement.await.map_err(|error| error.status())?;
        Ok(flight_schema(statement.plan.schema().as_arrow()))
    }

    async fn rows<T: Sync>(&self, request: &Request<T>, sql: &str) -> Result<Rows, Status> {
        let caller = self.caller(request).await?;
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_closed| Status::unavailable("the server stops"))?;
        let statement = self
            .engine
            .statement(Some(caller.client), caller.scope, sql);
        let statement = statement.await.map_err(|error| error.status())?;
        let answer = self
            .engine
            .run(statement)
            .await
            .map_err(|error| error.status())?;
        let schema = flight_schema(&answer.schema);
        let rows = answer.into_stream();
        Ok(Response::new(held(encoded(schema, rows), turn)))
    }
}

/// The same stream, which keeps a turn until it ends.
fn held<T: Send + 'static>(stream: FlightStream<T>, turn: OwnedSemaphorePermit) -> FlightStream<T> {
    Box::pin(stream.map(move |item| {
        let _kept = &turn;
        item
    }))
}

/// What a client asks for to get the rows of `ticket`.
fn info(
    ticket: Ticket,
    schema: &SchemaRef,
    descriptor: FlightDescriptor,
) -> Result<Response<FlightInfo>, Status> {
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    let info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(|error| Status::internal(error.to_string()))?
        .with_endpoint(endpoint)
        .with_descriptor(descriptor);
    Ok(Response::new(info))
}

fn ticket(message: &impl ProstMessageExt) -> Ticket {
    Ticket::new(message.as_any().encode_to_vec())
}

fn text(handle: &[u8]) -> Result<&str, Status> {
    std::str::from_utf8(handle)
        .map_err(|_not_text| Status::invalid_argument("the handle is of no statement"))
}

#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<FlightStream<HandshakeResponse>>, Status> {
        let token = caller::password(request.metadata())?;
        let bearer = format!("Bearer {token}");
        let header = bearer.parse().map_err(|_secret| {
            Status::unauthenticated("the password has characters that no header can carry")
        })?;
        let answer = HandshakeResponse {
            protocol_version: 0,
            payload: token.into_bytes().into(),
        };
        let stream: FlightStream<_> = Box::pin(futures::stream::iter([Ok(answer)]));
        let mut response = Response::new(stream);
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let schema = self.columns(&request, &query.query).await?;
        let of = TicketStatementQuery {
            statement_handle: query.query.into_bytes().into(),
        };
        info(ticket(&of), &schema, request.into_inner())
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let sql = text(&query.prepared_statement_handle)?.to_owned();
        let schema = self.columns(&request, &sql).await?;
        info(ticket(&query), &schema, request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.rows(&request, text(&ticket.statement_handle)?).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.rows(&request, text(&query.prepared_statement_handle)?)
            .await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let schema = self.columns(&request, &query.query).await?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: query.query.into_bytes().into(),
            dataset_schema: ipc(&schema)?,
            parameter_schema: ipc(&Arc::new(arrow::datatypes::Schema::empty()))?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _: ActionClosePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        _: CommandPreparedStatementQuery,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        Err(Status::unimplemented(
            "statements take no parameters; write the values into the statement",
        ))
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        info(
            ticket(&query),
            &query.into_builder().schema(),
            request.into_inner(),
        )
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        info(
            ticket(&query),
            &query.into_builder().schema(),
            request.into_inner(),
        )
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        info(
            ticket(&query),
            &query.into_builder().schema(),
            request.into_inner(),
        )
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        info(
            ticket(&query),
            &query.into_builder().schema(),
            request.into_inner(),
        )
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let of = ticket(&query);
        info(
            of,
            &query.into_builder(&catalog::SERVER).schema(),
            request.into_inner(),
        )
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let of = ticket(&query);
        info(
            of,
            &query.into_builder(&catalog::TYPES).schema(),
            request.into_inner(),
        )
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::catalogs(query)
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::schemas(query)
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::tables(query)
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::table_types(query)
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::sql_info(query)
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.caller(&request).await?;
        catalog::types(query)
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
