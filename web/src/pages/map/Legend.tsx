/** Legend of the maps' colours. */
export function Legend() {
  return (
    <ul className="legend" aria-label="Colours">
      {["ram", "fast", "slow", "empty"].map((tier) => (
        <li key={tier}>
          <i className={`dot ${tier}`} />
          {tier === "ram" ? "RAM" : tier}
        </li>
      ))}
      <li>brighter: hotter</li>
    </ul>
  );
}
