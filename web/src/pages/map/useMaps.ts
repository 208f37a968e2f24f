import { useEffect, useState } from "react";
import { stream, type MapWish } from "../../live/stream";
import { applied, type Picture } from "./picture";

/** The maps that are wanted, as they are now, by volume. */
export function useMaps(wish: MapWish): ReadonlyMap<string, Picture> {
  const [pictures, setPictures] = useState<ReadonlyMap<string, Picture>>(new Map());
  const key = JSON.stringify(wish);
  useEffect(() => {
    const wanted = JSON.parse(key) as MapWish;
    const known = new Map<string, Picture>();
    setPictures(new Map());
    if (wanted.maps.length === 0) return undefined;
    stream.want(wanted, (event) => {
      const next = applied(known.get(event.volume), event, performance.now());
      if (!next) return;
      known.set(event.volume, next);
      setPictures(new Map(known));
    });
    return () => stream.want(undefined, () => undefined);
  }, [key]);
  return pictures;
}
