//! What all formats have in common.

mod fuzz;

use proptest::prelude::*;

use super::*;

#[test]
fn words_and_formats_correspond() {
    for word in Format::WORDS {
        assert_eq!(word.parse::<Format>().unwrap().to_string(), word);
    }
    let error = "nerve".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"nerve\" is unknown; it is one of auto, kingpin, serverset, curator, hostport"
    );
}

#[test]
fn large_data_is_refused_before_it_is_parsed() {
    let data = vec![b' '; MAX_DATA_BYTES + 1];
    for word in Format::WORDS {
        let error = word.parse::<Format>().unwrap().decode("10.0.0.1:80", &data).unwrap_err();
        assert_eq!(error.to_string(), "65537 bytes of data, more than 65536");
    }
}

#[test]
fn zones_leave_the_labels() {
    let check = |labels: &[(&str, &str)], zone: &str| {
        let mut registration = Registration::new(Host::Name("h".into()), 1);
        registration.add_labels(labels.iter().copied());
        registration.settle_labels();
        assert_eq!(registration.zone, zone);
        assert!(registration.labels.keys().all(|name| name == "rack"));
    };
    check(&[("az", "a"), ("rack", "7")], "a");
    check(&[("az", "a"), ("zone", "b")], "b");
    check(&[("rack", "7")], "");
}

proptest! {
    #[test]
    fn what_is_decoded_can_be_published(name in "[0-9a-f-]{0,20}[a-z0-9.:\\[\\]]{1,20}:[0-9]{1,6}") {
        for format in [Format::Auto, Format::Kingpin, Format::Hostport] {
            if let Ok(decoded) = format.decode(&name, b"") {
                prop_assert_eq!(decoded.registrations.len(), 1);
                prop_assert_ne!(decoded.registrations[0].port, 0);
            }
        }
    }
}
