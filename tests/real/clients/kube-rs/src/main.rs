// SPDX-License-Identifier: Apache-2.0

//! The watcher of kube-rs for ConfigMaps. Prints a JSON line for each event and for each list.
//! usage: kube-rs-client KUBECONFIG [--streaming] [--metadata]

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{metadata_watcher, watcher, watcher::Event, WatchStreamExt};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{json, Map, Value};

fn key<K: ResourceExt>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

async fn print<K: ResourceExt>(events: impl Stream<Item = watcher::Result<Event<K>>>) {
    let mut events = events.default_backoff().boxed_local();
    let mut list = Map::new();

    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => list = Map::new(),
            Ok(Event::InitApply(o)) => {
                list.insert(key(&o), Value::from(o.resource_version()));
            }
            Ok(Event::InitDone) => println!("{}", json!({ "list": list })),
            Ok(Event::Apply(o)) => println!("{}", json!({"type": "MODIFIED", "key": key(&o), "rv": o.resource_version()})),
            Ok(Event::Delete(o)) => println!("{}", json!({"type": "DELETED", "key": key(&o)})),
            Err(watcher::Error::WatchError(status)) => println!("{}", json!({ "error": status.code })),
            Err(error) => println!("{}", json!({ "cut": error.to_string() })),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |option: &str| arguments.iter().any(|a| a == option);
    let kubeconfig = Kubeconfig::read_from(&arguments[1])?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let api: Api<ConfigMap> = Api::all(Client::try_from(config)?);
    let how = watcher::Config::default();
    let how = if given("--streaming") { how.streaming_lists() } else { how };

    if given("--metadata") {
        print(metadata_watcher(api, how)).await;
    } else {
        print(watcher(api, how)).await;
    }
    Ok(())
}
