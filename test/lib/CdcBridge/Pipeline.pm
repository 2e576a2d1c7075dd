package CdcBridge::Pipeline;

# One pipeline from a CdcBridge::Source into a CdcBridge::Postgres: makes what it needs, starts it, waits for it.
#
#   my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
#   $pipeline->setup->start->wait_for_state('streaming');
#   $pipeline->wait_for_catchup;
#   $pipeline->is_same('after the snapshot');        # a test: every row of every table is equal on both sides
#   $pipeline->is_verified('and says so');           # a test: cdc_verify() finds the same
#   $pipeline->is_mirrored('after random changes');  # both
#
# Whether both sides are equal is told by CdcBridge::Rows, which asks both servers and never the extension.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until timeout);
use CdcBridge::Rows;
use Test::Builder;

# name, server, schema (source), target_schema, tables (the text of the array), options (jsonb text), user_mapping options
sub new
{
	my ($class, %option) = @_;
	my $schema = $option{schema} // 'shop';
	return bless {
		name => 'shop_in',
		server => 'shop',
		schema => $schema,
		target_schema => $schema,
		tables => "{$schema.*}",
		options => undef,
		server_options => {},
		%option,
	}, $class;
}

sub name { return $_[0]{name}; }
sub source { return $_[0]{source}; }
sub postgres { return $_[0]{postgres}; }
sub quote { my ($text) = @_; $text =~ s/'/''/g; return "'$text'"; }

# The extension, the foreign server and the user mapping.
sub setup
{
	my ($self, %mapping) = @_;
	my ($source, $postgres) = @$self{qw(source postgres)};
	my %server = (host => $source->host, port => $source->port, %{ $self->{server_options} });
	%mapping = (username => $source->user, password => $source->password, %mapping);
	$postgres->psql(join(";\n",
		'set client_min_messages = warning',
		'create extension if not exists cdc_bridge',
		"create server $self->{server} foreign data wrapper cdc_mysql options (" . _options(%server) . ')',
		"create user mapping for current_user server $self->{server} options (" . _options(%mapping) . ')'));
	return $self;
}

sub _options
{
	my (%option) = @_;
	return join(', ', map { "$_ " . quote($option{$_}) } grep { defined $option{$_} } sort keys %option);
}

sub start_statement
{
	my ($self) = @_;
	my $options = defined $self->{options} ? ', options => ' . quote($self->{options}) : '';
	return sprintf('select cdc_start_pipeline(%s, source => %s, tables => %s, target_schema => %s%s)',
		map({ quote($_) } @$self{qw(name server tables target_schema)}), $options);
}

# The first start creates the pipeline; later ones start what exists.
sub start
{
	my ($self) = @_;
	$self->{postgres}->psql($self->{created}++ ? 'select cdc_start_pipeline(' . quote($self->{name}) . ')' : $self->start_statement);
	return $self;
}

sub stop
{
	my ($self) = @_;
	$self->{postgres}->psql('select cdc_stop_pipeline(' . quote($self->{name}) . ')');
	return $self->wait_for_state('stopped');
}

sub drop
{
	my ($self) = @_;
	$self->{postgres}->psql('select cdc_drop_pipeline(' . quote($self->{name}) . ')');
	delete $self->{created};
	return $self;
}

sub drop_target
{
	my ($self) = @_;
	$self->{postgres}->psql("set client_min_messages = warning; drop schema if exists $self->{target_schema} cascade");
	return $self;
}

# One column of the pipeline's row in the view; '' when there is none or it is null.
sub status
{
	my ($self, $column) = @_;
	my ($status, $out, $err) = $self->{postgres}->try_psql(
		"select $column from pg_stat_cdc_pipeline where pipeline = " . quote($self->{name}));
	return $status == 0 ? $out : '';
}

sub state { return $_[0]->status('state'); }

sub table_status
{
	my ($self, $table, $column) = @_;
	my ($status, $out, $err) = $self->{postgres}->try_psql("select $column from pg_stat_cdc_table where pipeline = "
		  . quote($self->{name}) . ' and source_table = ' . quote($table));
	return $status == 0 ? $out : '';
}

# Wait for a state (a name or a regular expression). Dies when the time is over, with all that the views say.
sub wait_for_state
{
	my ($self, $state, $seconds) = @_;
	my $pattern = ref $state ? $state : qr/^\Q$state\E$/;
	return $self if poll_until(sub { return $self->state =~ $pattern; }, $seconds);
	die "pipeline $self->{name} did not reach state $state\n" . $self->describe;
}

# Wait until a column of the pipeline's row matches.
sub wait_for_status
{
	my ($self, $column, $pattern, $seconds) = @_;
	return $self if poll_until(sub { return $self->status($column) =~ $pattern; }, $seconds);
	die "pipeline $self->{name}: $column did not become $pattern\n" . $self->describe;
}

sub wait_for_table_state
{
	my ($self, $table, $state, $seconds) = @_;
	return $self if poll_until(sub { return $self->table_status($table, 'state') eq $state; }, $seconds);
	die "table $table did not reach state $state\n" . $self->describe;
}

# Wait until all tables stream (or are stopped for good), and none is still to join or to begin anew: the snapshot is over.
sub wait_for_tables
{
	my ($self, $seconds) = @_;
	my $name = quote($self->{name});
	my $query = "select count(*) > 0 and bool_and(state in ('streaming', 'stopped')) and (select s.tables_asked = s.tables_done from cdc_bridge.pipeline_state s"
	  . " join cdc_bridge.pipeline p using (pipeline_id) where p.name = $name) from pg_stat_cdc_table where pipeline = $name";
	return $self if $self->{postgres}->poll($query, 't', $seconds);
	die "the tables of pipeline $self->{name} do not stream\n" . $self->describe;
}

# Wait until everything that the source has logged by now is in the target: the applied position is at or past the
# log's end, or the log has no transaction between the two. File numbers are compared as numbers.
sub wait_for_catchup
{
	my ($self, $seconds) = @_;
	my ($file, $offset) = $self->{source}->binlog_position;
	my $seen = '';
	my $done = poll_until(sub {
		my $applied = $self->status("applied_file || ':' || applied_offset");
		my ($applied_file, $applied_offset) = $applied =~ /^(.*):(\d+)$/ or return 0;
		return 1 if _compare($applied_file, $applied_offset, $file, $offset) >= 0;
		return 0 if $seen eq $applied;    # look into the log only once for each position
		my $nothing = $self->{source}->nothing_after($applied_file, $applied_offset);
		$seen = defined $nothing ? $applied : '';    # no answer: look again
		return $nothing;
	}, $seconds);
	return $self if $done;
	my $why = $self->{source}{log_error} ? "the log could not be read: $self->{source}{log_error}\n" : '';
	die "pipeline $self->{name} did not catch up to $file:$offset\n" . $why . $self->describe;
}

sub _compare
{
	my ($file_a, $offset_a, $file_b, $offset_b) = @_;
	my ($number_a, $number_b) = map { /\.(\d+)$/ ? $1 : 0 } $file_a, $file_b;
	return $number_a <=> $number_b || $offset_a <=> $offset_b;
}

# Everything that the views and the end of the server's log say: for error messages.
sub describe
{
	my ($self) = @_;
	my $text = '';
	for my $view (qw(pg_stat_cdc_pipeline pg_stat_cdc_table pg_stat_cdc_snapshot pg_stat_cdc_verify))
	{
		my ($status, $out, $err) = $self->{postgres}->try_psql("\\x on\n\\t off\nselect * from $view");
		$text .= "-- $view\n$out$err\n";
	}
	return $text . "-- server log\n" . $self->{postgres}->log_tail(25);
}

# Ask the extension itself: cdc_verify() over TABLES (names at the source; default: all) in full mode, or MODE. Waits for
# it, and returns what it found, one line for each row or table that is not equal; '' when all is well. It stands beside
# same_rows, which never asks the extension, and does not replace it.
sub verify
{
	my ($self, @tables) = @_;
	return $self->verify_mode('full', @tables);
}

sub verify_mode
{
	my ($self, $mode, @tables) = @_;
	my $list = @tables ? quote('{' . join(',', map { "$self->{schema}.$_" } @tables) . '}') : 'null';
	my $request = $self->{postgres}->psql('select cdc_verify(' . quote($self->{name}) . ", $list, " . quote($mode) . ')');
	return $self->verify_result($request);
}

# Wait for a request of cdc_verify() and tell what it found.
sub verify_result
{
	my ($self, $request) = @_;
	my $postgres = $self->{postgres};
	$self->{verify_request} = $request;
	my ($status, $out, $err) = $postgres->try_psql("call cdc_wait_for_verify($request, '" . timeout() . " s')");
	return "verification $request: $err" . $self->describe if $status != 0;
	my $tables = $postgres->psql("select format('%s: %s missing, %s extra, %s different, %s unsettled, %s%s', source_table, missing, extra, different, "
		. "unsettled, state, ': ' || reason) from pg_stat_cdc_verify where request = $request and (state <> 'done' or missing + extra + different + unsettled > 0) order by source_table");
	my $rows = $postgres->psql("select format('%s: %s %s%s', source_table, kind, key, ' ' || columns::text) from cdc_verify_differences($request) order by source_table, kind, key");
	return join('', map { "$_\n" } grep { $_ ne '' } $tables, $rows);
}

# The same as a test: nothing is found.
sub is_verified
{
	my ($self, $name, @tables) = @_;
	my $test = Test::Builder->new;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $found = $self->verify(@tables);
	my $ok = $test->ok($found eq '', $name);
	$test->diag($found) unless $ok;
	return $ok;
}

# Both: every row is equal by an own comparison, and cdc_verify() finds nothing. For tests that change rows at random, when all has arrived.
sub is_mirrored
{
	my ($self, $name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $same = $self->is_same($name, @tables);
	return $self->is_verified("$name: cdc_verify() finds the same", @tables) && $same;
}

# Compare all rows of TABLES (default: all base tables of the source's schema). True when they are equal; otherwise
# $self->{difference} tells the first differences.
sub same_rows
{
	my ($self, @tables) = @_;
	my $rows = CdcBridge::Rows->new(%$self{qw(source postgres schema target_schema)});
	$self->{difference} = $rows->differences(@tables);
	return $self->{difference} eq '';
}

# The same for many tables, a test for each, named "TABLE: NAME" or as TITLES says for a table.
sub are_same
{
	my ($self, $name, $titles, @tables) = @_;
	my $test = Test::Builder->new;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my %difference = CdcBridge::Rows->new(%$self{qw(source postgres schema target_schema)})->differences_by_table(@tables);
	for my $table (@tables)
	{
		$test->ok($difference{$table} eq '', ($titles->{$table} // $table) . ": $name")
		  or $test->diag($difference{$table}, $self->table_status($table, "concat_ws(e'\\n', state, last_error, last_error_detail)"));
	}
	return $self;
}

# The same as a test.
sub is_same
{
	my ($self, $name, @tables) = @_;
	my $test = Test::Builder->new;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $ok = $test->ok($self->same_rows(@tables), $name);
	$test->diag($self->{difference}) unless $ok;
	return $ok;
}

1;
