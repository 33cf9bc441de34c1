//! The pipeline, end to end: registrations in a real ZooKeeper or in files, Tower and a Beacon as
//! processes, real Envoys, and requests through them.
//!
//! One program for all of them, so that it is linked once and the ZooKeeper is started once.

mod api;
mod beacons;
mod chaos;
mod churn;
mod commands;
mod compiled;
mod demo;
mod deploy;
mod domains;
mod drain;
mod egress;
mod event_log;
mod fields;
mod flags;
mod formats;
mod grpc;
mod guard;
mod hand_over;
mod hostile;
mod malformed;
mod outage;
mod pcloud;
mod per_type;
mod refusals;
mod registrar;
mod registry;
mod releases;
mod scopes;
mod secured;
mod serve;
mod socket;
mod statics;
mod support;
mod survival;
mod tls;
mod unreachable;
mod weights;
mod zones;
