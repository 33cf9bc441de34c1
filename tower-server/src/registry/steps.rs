//! The steps of an activation, and the assignment at each.

use tower_proto::v1::{
    ActivationStarted, Assignment, Audience,
    activation_started::Step,
    assignment::Rule,
    audience::{Names, Percent, Term, term},
};

/// How long a step stands before the next one, unless the plan says otherwise, in milliseconds.
pub const PAUSE_MS: u32 = 3_000;

/// All hosts, in basis points.
const ALL: u32 = 10_000;

/// The default plan within an audience: this host, then 10 % by this salt, then all.
pub fn careful(audience: &Audience, host: &str, salt: &str) -> Vec<Step> {
    let host_names = Names { names: vec![host.to_owned()] };
    let one = Step {
        audience: Some(audience_of(term::Term::Hosts(host_names))),
        title: format!("1 host: {host}"),
        pause_ms: 0,
    };
    // Of the hosts that an audience has by percentage, these are the first tenth.
    let whole = audience.terms.iter().find_map(percent).cloned();
    let whole = whole.unwrap_or(Percent { basis_points: ALL, salt: salt.to_owned() });
    let tenth = Percent { basis_points: whole.basis_points.div_ceil(10), salt: whole.salt };
    let some = Step {
        audience: Some(audience_of(term::Term::Percent(tenth))),
        title: "10 %".into(),
        pause_ms: PAUSE_MS,
    };
    vec![one, some, Step { pause_ms: PAUSE_MS, ..all() }]
}

/// The step to all hosts of the audience.
pub fn all() -> Step {
    Step { audience: Some(Audience::default()), title: "all".into(), pause_ms: 0 }
}

/// Whether a step is for all hosts of the activation's audience.
pub fn is_all(step: &Step) -> bool {
    step.audience.as_ref().is_none_or(|audience| audience.terms.is_empty())
}

/// The salt of an audience's percentage; empty if it has none.
pub fn salt_of(audience: &Audience) -> &str {
    let percent = audience.terms.iter().find_map(percent);
    percent.map_or("", |percent| &percent.salt)
}

fn percent(term: &Term) -> Option<&Percent> {
    match &term.term {
        Some(term::Term::Percent(percent)) => Some(percent),
        Some(
            term::Term::Hosts(_) | term::Term::Zones(_) | term::Term::Label(_) | term::Term::Workloads(_),
        )
        | None => None,
    }
}

/// The hosts of an activation at a step (0 is the first): those of that step alone.
pub fn audience_at(started: &ActivationStarted, step: usize) -> Audience {
    let mut audience = started.audience.clone().unwrap_or_default();
    let within = started.steps.get(step).and_then(|step| step.audience.clone());
    audience.terms.extend(within.unwrap_or_default().terms);
    audience
}

/// The assignment of a service while an activation is at a step. Hosts that have the release keep it, and those
/// that no step has reached yet keep what they had.
pub fn assignment_at(started: &ActivationStarted, step: usize) -> Assignment {
    let before = started.before.clone().unwrap_or_default();
    let audience = started.audience.clone().unwrap_or_default();
    let rule = |audience| Rule {
        audience: Some(audience),
        release: started.release.clone(),
        activation: started.activation.clone(),
    };
    if step + 1 < started.steps.len() {
        let rules = (0..=step).map(|step| rule(audience_at(started, step)));
        let had = started.over.clone().unwrap_or(before);
        return Assignment { rules: rules.chain(had.rules).collect(), ..had };
    }
    if audience.terms.is_empty() {
        return Assignment { rules: Vec::new(), default_release: started.release.clone() };
    }
    let others = before.rules.into_iter().filter(|other| other.audience.as_ref() != Some(&audience));
    let rules = [rule(audience.clone())].into_iter().chain(others).collect();
    Assignment { rules, default_release: before.default_release }
}

fn audience_of(term: term::Term) -> Audience {
    Audience { terms: vec![Term { term: Some(term) }] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Audience {
        audience_of(term::Term::Zones(Names { names: vec![name.into()] }))
    }

    fn started(audience: Audience, steps: Vec<Step>, before: Assignment) -> ActivationStarted {
        ActivationStarted {
            activation: "web-7".into(),
            release: "new".into(),
            audience: Some(audience),
            steps,
            before: Some(before),
            ..Default::default()
        }
    }

    fn releases(assignment: &Assignment) -> Vec<&str> {
        let rules = assignment.rules.iter().map(|rule| rule.release.as_str());
        rules.chain([assignment.default_release.as_str()]).collect()
    }

    #[test]
    fn each_step_adds_hosts_and_takes_none_away() {
        let before = Assignment { default_release: "old".into(), ..Default::default() };
        let started = started(Audience::default(), careful(&Audience::default(), "host-1", "web-7"), before);
        assert_eq!(releases(&assignment_at(&started, 0)), ["new", "old"]);
        assert_eq!(releases(&assignment_at(&started, 1)), ["new", "new", "old"]);
        assert_eq!(assignment_at(&started, 1).rules[0], assignment_at(&started, 0).rules[0]);
        assert_eq!(releases(&assignment_at(&started, 2)), ["new"]);
    }

    #[test]
    fn an_audience_keeps_the_others_and_replaces_itself() {
        let rule = |zone_name, release: &str| Rule {
            audience: Some(zone(zone_name)),
            release: release.into(),
            activation: "web-3".into(),
        };
        let before =
            Assignment { rules: vec![rule("a", "canary"), rule("b", "b")], default_release: "old".into() };
        let started = started(zone("a"), vec![all()], before);
        let after = assignment_at(&started, 0);
        assert_eq!(releases(&after), ["new", "b", "old"]);
        assert_eq!(after.rules[0].audience, Some(zone("a")));
    }

    #[test]
    fn a_tenth_of_a_percentage_is_within_it() {
        let of =
            |basis_points| audience_of(term::Term::Percent(Percent { basis_points, salt: "web-3".into() }));
        let steps = careful(&of(505), "host-1", "web-7");
        let tenth = of(51);
        assert_eq!(steps[1].audience, Some(tenth), "rounded up, with the same first hosts");
    }
}
