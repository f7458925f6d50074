//! The control port: loopback only, behind a secret that only the store's
//! owner can read.

use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::desk::Desk;
use super::question::Question;

const FILE: &str = "control.json";
/// Only a gate's answer has it: when a gate was killed, another program may get its port.
const FROM_A_GATE: &str = "tidegate-control";
/// A gate begins its answer at once, whatever it has to do for it.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// How to reach the gate that holds a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Address {
    pid: u32,
    port: u16,
    token: String,
}

/// The control port of this process; closed, and its file removed, on drop.
#[derive(Debug)]
pub struct Control {
    file: PathBuf,
    server: tokio::task::JoinHandle<()>,
}

/// Why a running gate gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No gate runs on this store.
    #[error("no gate runs on this store")]
    NobodyThere,
    /// It answered with an error.
    #[error("{0}")]
    Answer(String),
    /// It stopped in the middle of its answer.
    #[error("the gate that holds this store stopped in the middle of its answer")]
    Cut,
}

impl Control {
    /// Opens the port.
    ///
    /// # Errors
    /// When the port or the file cannot be had.
    pub async fn open(desk: Desk, metrics: Metrics) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let token = secret()?;
        let file = desk.store.folder().join(FILE);
        let address = Address {
            pid: std::process::id(),
            port: listener.local_addr()?.port(),
            token: token.clone(),
        };
        write_private(&file, &serde_json::to_vec(&address)?)?;
        let state = Arc::new(Shared {
            desk,
            token,
            metrics,
        });
        let router = Router::new()
            .route("/ask", post(answer))
            .route("/metrics", get(metrics_text))
            .with_state(state);
        #[expect(
            clippy::disallowed_methods,
            reason = "its handle is kept, and ended on drop"
        )]
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the control port is closed");
            }
        });
        Ok(Self { file, server })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.server.abort();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Gives the metrics as text.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

struct Shared {
    desk: Desk,
    token: String,
    metrics: Metrics,
}

/// 32 bytes from the operating system, in hex.
fn secret() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0_u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    // A file of a gate that was killed; its mode must not be taken over.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

fn is_authorised(headers: &HeaderMap, token: &str) -> bool {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let given = given
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    // Compared as hashes: how long it takes says nothing about the secret.
    blake3::hash(given.as_bytes()) == blake3::hash(token.as_bytes())
}

async fn metrics_text(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !is_authorised(&headers, &shared.token) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    (shared.metrics)().into_response()
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_authorised(&headers, &shared.token) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let question: Question = match serde_json::from_slice(&body) {
        Ok(question) => question,
        Err(error) => {
            let status = StatusCode::BAD_REQUEST;
            return (status, [(FROM_A_GATE, "1")], error.to_string()).into_response();
        }
    };
    let (rows, mut found) = mpsc::channel(256);
    let (lines, body) = mpsc::channel::<String>(256);
    let desk = shared.desk.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with its answer, or when the caller leaves"
    )]
    tokio::spawn(async move {
        let asked = desk.answer(question, rows);
        let passed_on = async {
            while let Some(row) = found.recv().await {
                let _ = lines.send(format!("{}\n", json!({ "row": row }))).await;
            }
        };
        let (answered, ()) = tokio::join!(asked, passed_on);
        let last = match answered {
            Ok(()) => json!({"end": true}),
            Err(error) => json!({"error": error.to_string()}),
        };
        let _ = lines.send(format!("{last}\n")).await;
    });
    ([(FROM_A_GATE, "1")], Body::new(Lines(body))).into_response()
}

/// A channel as a body.
struct Lines(mpsc::Receiver<String>);

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0
            .poll_recv(cx)
            .map(|line| line.map(|line| Ok(http_body::Frame::data(line.into()))))
    }
}

/// Asks the gate that holds the store in `folder`.
///
/// # Errors
/// When none does, or it gives no answer.
pub async fn ask(
    folder: &Path,
    question: &Question,
    mut row: impl FnMut(Value) -> bool,
) -> Result<(), ControlError> {
    let text = std::fs::read_to_string(folder.join(FILE)).map_err(|_| ControlError::NobodyThere)?;
    let address: Address = serde_json::from_str(&text).map_err(|_| ControlError::NobodyThere)?;
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port));
    let client = crate::egress::loopback_client()
        .map_err(|error| ControlError::Answer(error.to_string()))?;
    let body =
        serde_json::to_vec(question).map_err(|error| ControlError::Answer(error.to_string()))?;
    let asked = client
        .post(format!("http://{to}/ask"))
        .bearer_auth(&address.token)
        .body(body)
        .send();
    let mut response = match tokio::time::timeout(LONGEST_SILENCE, asked).await {
        Ok(Ok(response)) if response.headers().contains_key(FROM_A_GATE) => response,
        _ => return Err(ControlError::NobodyThere),
    };
    if response.status() != StatusCode::OK {
        let status = response.status();
        let words = response.text().await.unwrap_or_default();
        return Err(ControlError::Answer(format!("{status}: {words}")));
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| ControlError::Cut)? {
        text.extend_from_slice(&chunk);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let rest = text.split_off(end + 1);
            let line = std::mem::replace(&mut text, rest);
            let mut line: Value = serde_json::from_slice(&line).map_err(|_| ControlError::Cut)?;
            if let Some(error) = line.get("error").and_then(Value::as_str) {
                return Err(ControlError::Answer(error.to_owned()));
            }
            if line.get("end").is_some() {
                return Ok(());
            }
            if !row(line.get_mut("row").map(Value::take).unwrap_or_default()) {
                return Ok(());
            }
        }
    }
    Err(ControlError::Cut)
}
