//! The program: one statement, a shell, or a server of Arrow Flight SQL.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
};

use hindsight_connect::Failure;
use tokio::net::TcpListener;

use crate::{Engine, Error, Listening, Runner, args::Args, cluster::Cluster, serve, shell};

/// Runs a program to its end, on as many threads as there are processors, and says on standard error why it failed.
pub fn main(program: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    // It fails where there is one already, which then is used.
    drop(provider.install_default());
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(program));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let said = failure.to_string();
            if !said.is_empty() {
                // Where standard error is closed there is nothing left to tell it to.
                drop(writeln!(io::stderr(), "error: {said}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Runs a statement, a shell or a server, of which `cluster` executes the plans if there is one.
pub async fn run(mut args: Args, cluster: Option<Arc<dyn Cluster>>) -> Result<(), Failure> {
    let (limits, scope) = (args.limits(), args.scope()?);
    let (command, format, listen) = (args.command.take(), args.output, args.listen);
    let tls = args.tls_cert.take().zip(args.tls_key.take());
    let statements = usize::from(args.statements);
    if let Some(address) = listen
        && tls.is_none()
        && !address.ip().is_loopback()
    {
        return Err(Failure::usage(format!(
            "tokens would be sent to {address} as they are; give --tls-cert and --tls-key, or listen on a loopback \
             address such as 127.0.0.1:8082"
        )));
    }
    let failed = |error: Error| error.failure("");
    let source = args.source().map_err(failed)?;
    let engine = Arc::new(Engine::new(source, limits, cluster).map_err(failed)?);
    if let Some(address) = listen {
        // It says now what is wrong with files of credentials, and knows the address of the server.
        let server = engine.source().connect().map(|connect| connect.client());
        server.transpose()?;
        let listener = TcpListener::bind(address).await;
        let listener = listener
            .map_err(|error| Failure::other(format!("cannot listen on {address}: {error}")))?;
        writeln!(
            io::stderr(),
            "serving Arrow Flight SQL on {}",
            listener.local_addr()?
        )?;
        let listening = Listening {
            listener,
            tls,
            statements,
        };
        return serve(engine, scope, listening, stopped())
            .await
            .map_err(failed);
    }
    let runner = Runner { engine, scope };
    match command {
        Some(sql) => runner.run(&sql, format, &mut io::stdout()).await,
        None => shell(runner, format).await,
    }
}

/// Until the process is told to stop.
pub async fn stopped() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_no_signals) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
