//! Who may what, by every command.

use tower_proto::v1;

use super::{World, hash, refused};
use crate::registry::{
    Command, RefusalKind,
    commands::{
        Abort, Activate, Adopt, Approve, Deactivate, EditPart, IssueToken, RecordHold, ReleaseHold, Report,
        Retire, RevokeToken, RollBack, Step, Traffic, Upload,
    },
    permission::{Role, TOWER},
};

fn about_web() -> Vec<Command> {
    let service = || "web".to_owned();
    vec![
        Command::Upload(Upload { service: service(), file: String::new(), text: "new".into() }),
        Command::Approve(Approve { service: service(), version: 1 }),
        Command::Retire(Retire { service: service(), version: 2 }),
        Command::Activate(Activate { service: service(), version: 2, ..Default::default() }),
        Command::Traffic(Traffic { service: service(), ..Default::default() }),
        Command::RollBack(RollBack { service: service(), to: Some(2) }),
        Command::Deactivate(Deactivate { service: service() }),
    ]
}

fn edit(owner: v1::part_edited::Owner, service: Option<&str>) -> Command {
    Command::EditPart(EditPart {
        owner,
        service: service.map(str::to_owned),
        file: String::new(),
        text: Some("x".into()),
    })
}

fn about_the_mesh() -> Vec<(Command, &'static [&'static str])> {
    let issued = v1::TokenIssued {
        id: "new".into(),
        name: "new".into(),
        hash: hash("new").into(),
        roles: vec!["viewer".into()],
        ..Default::default()
    };
    vec![
        (edit(v1::part_edited::Owner::Platform, None), &["admin", "pat"]),
        (edit(v1::part_edited::Owner::Platform, Some("web")), &["admin", "pat"]),
        (edit(v1::part_edited::Owner::Security, None), &["admin", "sue"]),
        (edit(v1::part_edited::Owner::Security, Some("web")), &["admin", "sue"]),
        (Command::IssueToken(IssueToken { issued }), &["admin"]),
        (Command::RevokeToken(RevokeToken { id: "vic".into() }), &["admin", "vic"]),
        (Command::ReleaseHold(ReleaseHold { source: "zk".into(), hold: "h".into() }), &["admin", "pat"]),
        (Command::Adopt(Adopt { source: "zk".into(), incarnation: "2".into() }), &["admin", "pat"]),
        (
            Command::RecordHold(RecordHold {
                hold: v1::HoldRecorded { source: "zk".into(), hold: "h".into(), endpoints: 3 },
            }),
            &[TOWER],
        ),
    ]
}

const EVERYBODY: [&str; 8] = ["admin", "ann", "bob", "pat", "sue", "vic", TOWER, "nobody"];

/// Who is let do it, each in a world of their own.
fn allowed(world: impl Fn() -> World, command: &Command) -> Vec<&'static str> {
    let may = |by: &&&str| match world().run(by, command.clone()) {
        Ok(_) => true,
        Err(refusal) if refusal.kind == RefusalKind::Forbidden => false,
        Err(refusal) => panic!("{by}, {command:?}: {refusal}"),
    };
    EVERYBODY.iter().filter(may).copied().collect()
}

fn with_versions() -> World {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    world
}

#[test]
fn only_its_owner_and_admins_change_a_service() {
    for command in about_web() {
        assert_eq!(allowed(with_versions, &command), ["admin", "ann"], "{command:?}");
    }
}

#[test]
fn what_belongs_to_others_is_theirs() {
    for (command, who) in about_the_mesh() {
        let mut who = who.to_vec();
        who.sort_by_key(|by| EVERYBODY.iter().position(|other| other == by));
        assert_eq!(allowed(World::new, &command), who, "{command:?}");
    }
}

#[test]
fn whoever_owns_a_part_may_release_it_and_stop_it_but_choose_no_version() {
    let in_progress = || {
        let mut world = with_versions();
        world.run("pat", edit(v1::part_edited::Owner::Platform, None)).unwrap();
        world
    };
    let again = Command::Activate(Activate { service: "web".into(), version: 1, ..Default::default() });
    assert_eq!(allowed(in_progress, &again), ["admin", "ann", "pat", "sue"]);
    let stepping = || {
        let mut world = with_versions();
        world.activate("web", 2, false);
        world
    };
    let abort = Command::Abort(Abort { service: "web".into(), activation: None });
    assert_eq!(allowed(stepping, &abort), ["admin", "ann", "pat", "sue", TOWER]);
    let id = stepping().state.service("web").unwrap().running().unwrap().started.clone().unwrap().activation;
    let step = Command::Step(Step { service: "web".into(), activation: id.clone(), step: 1 });
    assert_eq!(allowed(stepping, &step), ["admin", "ann", TOWER]);
    let reported = v1::ActivationReported { activation: id, tower: "t".into(), ..Default::default() };
    let report = Command::Report(Report { service: "web".into(), reported });
    assert_eq!(allowed(stepping, &report), [TOWER]);
}

#[test]
fn a_refusal_names_the_owner() {
    let mut world = with_versions();
    let refusal = refused(world.run("bob", about_web().remove(0)), "forbidden");
    assert_eq!(refusal.owner.as_deref(), Some("team-web"));
    let refusal = refused(world.run("ann", edit(v1::part_edited::Owner::Security, Some("web"))), "forbidden");
    assert_eq!(refusal.owner.as_deref(), Some("security"));
}

#[test]
fn a_token_that_is_revoked_or_has_expired_may_nothing() {
    let mut world = World::new();
    world.run("admin", Command::RevokeToken(RevokeToken { id: "ann".into() })).unwrap();
    refused(world.run("ann", about_web().remove(0)), "revoked-credential");
    let issued = v1::TokenIssued {
        id: "eve".into(),
        name: "eve".into(),
        hash: hash("eve").into(),
        roles: vec!["owner".into()],
        services: vec!["web".into()],
        expires_ms: world.now_ms + 10,
        ..Default::default()
    };
    world.run("admin", Command::IssueToken(IssueToken { issued })).unwrap();
    world.run("eve", about_web().remove(0)).unwrap();
    world.now_ms += 10;
    refused(world.run("eve", about_web().remove(0)), "expired-credential");
}

#[test]
fn there_is_always_an_admin_or_tower_makes_one() {
    let mut world = World::new();
    refused(world.run("admin", Command::RevokeToken(RevokeToken { id: "admin".into() })), "last-admin");
    let issue = |id: &str, expires_ms| {
        let issued = v1::TokenIssued {
            id: id.into(),
            name: id.into(),
            hash: hash(id).into(),
            roles: vec!["admin".into()],
            services: Vec::new(),
            expires_ms,
            ..Default::default()
        };
        Command::IssueToken(IssueToken { issued })
    };
    refused(world.run(TOWER, issue("second", 0)), "forbidden");
    let soon = world.now_ms + 5;
    world.run("admin", issue("short", soon)).unwrap();
    world.run("short", Command::RevokeToken(RevokeToken { id: "admin".into() })).unwrap();
    world.now_ms += 10;
    world.run(TOWER, issue("second", 0)).unwrap();
    world.run("second", about_web().remove(0)).unwrap();
}

#[test]
fn a_certificate_may_what_its_name_was_given() {
    let mut world = World::new();
    let issue = |roles: &[&str]| {
        let issued = v1::TokenIssued {
            id: "cert:ci.example".into(),
            name: "ci".into(),
            hash: hash("").split_off(32).into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            services: vec!["web".into()],
            expires_ms: 0,
            ..Default::default()
        };
        Command::IssueToken(IssueToken { issued })
    };
    refused(world.run("cert:ci.example", about_web().remove(0)), "unknown-credential");
    world.run("admin", issue(&["viewer"])).unwrap();
    refused(world.run("cert:ci.example", about_web().remove(0)), "forbidden");
    world.run("admin", issue(&["owner"])).unwrap();
    world.run("cert:ci.example", about_web().remove(0)).unwrap();
    assert!(world.run("admin", issue(&["owner"])).unwrap().events.is_empty());
}

#[test]
fn roles_have_names_and_others_are_none() {
    for role in Role::ALL {
        assert_eq!(role.to_string().parse::<Role>(), Ok(role));
    }
    assert!("root".parse::<Role>().unwrap_err().contains("viewer, owner, platform, security, admin"));
}
