//! Ending xDS streams in good order when the Beacon stops.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_common::view::Composition;

/// These compositions, until it is time to stop. Then there are no more, by which streams know that they
/// are to end: otherwise a server that stops would wait for them, and cut them.
pub fn until(
    stopping: CancellationToken,
    mut compositions: watch::Receiver<Composition>,
) -> watch::Receiver<Composition> {
    let (sender, receiver) = watch::channel(compositions.borrow_and_update().clone());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                changed = compositions.changed() => match changed {
                    Ok(()) => drop(sender.send_replace(compositions.borrow_and_update().clone())),
                    Err(_) => return,
                },
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn they_are_passed_on_until_it_is_time_to_stop() {
        let complete = || Composition { complete: true, ..Composition::default() };
        let (sender, receiver) = watch::channel(Composition::default());
        let stopping = CancellationToken::new();
        let mut passed_on = until(stopping.clone(), receiver);
        sender.send_replace(complete());
        passed_on.changed().await.unwrap();
        assert!(passed_on.borrow_and_update().complete);
        stopping.cancel();
        assert!(passed_on.changed().await.is_err());
    }
}
