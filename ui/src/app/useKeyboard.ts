import { useEffect } from "react";
import { useNavigate } from "react-router";
import { places } from "./places";

const CHORD_MS = 1200;

/** Keys that work on every page, unless one is writing: `g` and a letter, `/`, `?`. */
export function useKeyboard(openHelp: () => void) {
  const navigate = useNavigate();
  useEffect(() => {
    let chord = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      if (Date.now() - chord < CHORD_MS) {
        chord = 0;
        const place = places.find(({ key }) => key === event.key);
        if (place) {
          event.preventDefault();
          void navigate(place.to);
          return;
        }
      }
      if (event.key === "g") chord = Date.now();
      else if (event.key === "?") openHelp();
      else if (event.key === "/") {
        const search = document.querySelector<HTMLElement>("input[data-search]");
        if (search) event.preventDefault();
        search?.focus();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate, openHelp]);
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
      !!target.closest("[role=dialog]"))
  );
}
