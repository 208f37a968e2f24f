import { useId, type InputHTMLAttributes, type ReactNode } from "react";

interface Labelled {
  label: string;
  hint?: ReactNode;
}

type Input = Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value">;

interface TextProps extends Labelled, Input {
  value: string;
  onChange: (value: string) => void;
}

export function TextField({ label, hint, value, onChange, ...rest }: TextProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        autoComplete="off"
        spellCheck={false}
        aria-describedby={hint ? `${id}-hint` : undefined}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        {...rest}
      />
      {hint && (
        <small id={`${id}-hint`} className="hint">
          {hint}
        </small>
      )}
    </div>
  );
}

interface LinesProps extends Labelled {
  value: string;
  rows?: number;
  placeholder?: string;
  onChange: (value: string) => void;
}

/** Several lines, one thing each. */
export function LinesField({ label, hint, value, rows = 3, placeholder, onChange }: LinesProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        spellCheck={false}
        placeholder={placeholder}
        aria-describedby={hint ? `${id}-hint` : undefined}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {hint && (
        <small id={`${id}-hint`} className="hint">
          {hint}
        </small>
      )}
    </div>
  );
}

interface SelectProps<T extends string> extends Labelled {
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function SelectField<T extends string>({ label, hint, value, options, onChange }: SelectProps<T>) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value as T)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      {hint && <small className="hint">{hint}</small>}
    </div>
  );
}

interface CheckProps extends Labelled {
  checked: boolean;
  onChange: (checked: boolean) => void;
}

export function CheckField({ label, hint, checked, onChange }: CheckProps) {
  const id = useId();
  return (
    <div className="field check">
      <input id={id} type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <label htmlFor={id}>{label}</label>
      {hint && <small className="hint">{hint}</small>}
    </div>
  );
}
